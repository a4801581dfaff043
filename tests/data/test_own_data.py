"""Data and models of one's own, in a run, with no change to the package."""

import numpy as np
import pytest
import torch
from torch import nn

import demoa
from demoa.data import Dataset, Examples, load_dataset
from demoa.experiment.build import make_experiment
from demoa.experiment.load import read_spec

SMALL = ("clients.n=4", "clients.byzantine=1", "clients.batch_size=4", "run.rounds=2")


class Tiny(nn.Module):
    """A model as a user would write it."""

    def __init__(self, channels, size, classes, width=3):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(channels * size * size, width), nn.Dropout(0.1), nn.Linear(width, classes)
        )

    def forward(self, images):
        return self.layers(images)


def own_dataset():
    return load_dataset("digits")


class Pairs(torch.utils.data.Dataset):
    """A torch Dataset as a user would write it: images with values of their own, and labels."""

    def __init__(self, count=60, classes=3):
        self.count, self.classes = count, classes

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        return torch.full((1, 6, 6), float(place)), place % self.classes


class Numbers(Pairs):
    def __getitem__(self, place):
        return torch.zeros(1, 6, 6), place / 100


def drawn_anew():
    return torch.utils.data.random_split(Pairs(40), [30, 10])[0]


class WithStatistics(nn.Sequential):
    def __init__(self, channels, size, classes):
        super().__init__(nn.BatchNorm2d(channels), nn.Flatten(), nn.Linear(channels * size * size, classes))


def two_parts():
    return Pairs(40), Pairs(12)


def an_iterator():
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([])

    return Endless()


def npz(path, **changes):
    random = np.random.default_rng(0)
    arrays = {"x": random.integers(0, 255, (100, 6, 6), dtype=np.uint8), "y": np.arange(100) % 3, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_an_npz_file_is_split_and_normalised(tmp_path):
    dataset = load_dataset(str(npz(tmp_path / "own.npz")))
    assert (len(dataset.train), len(dataset.test), dataset.classes) == (80, 20, 3)
    assert (dataset.channels, dataset.size) == (1, 6)
    images, _ = dataset.train.batch(np.arange(80))
    assert abs(float(images.mean())) < 1e-4
    assert float(images.std()) == pytest.approx(1.0, abs=1e-3)


def test_a_test_set_in_the_file_is_used(tmp_path):
    path = npz(tmp_path / "own.npz", x_test=np.zeros((7, 6, 6), np.float32), y_test=np.zeros(7, int))
    assert len(load_dataset(str(path)).test) == 7


def test_own_data_and_an_own_model_train(tmp_path):
    path = npz(tmp_path / "own.npz")
    here = "tests.data.test_own_data"
    for task in (
        [f"task.dataset={path}", "task.model=logistic"],
        [f'task.dataset="{here}:own_dataset"', f'task.model={{name="{here}:Tiny", width=5}}'],
    ):
        federation = make_experiment(read_spec(None, [*SMALL, *task])).federation
        before = federation.server.parameters.clone()
        federation.play()
        assert not np.array_equal(federation.server.parameters.numpy(), before.numpy())


def test_torch_datasets_are_taken_as_they_are():
    here = "tests.data.test_own_data"
    one = load_dataset(f"{here}:Pairs", {"count": 30})
    assert (len(one.train), len(one.test), one.classes) == (24, 6, 3)
    two = load_dataset(f"{here}:two_parts")
    assert (len(two.train), len(two.test)) == (40, 12)
    images, labels = two.train.batch(np.array([7]))
    assert float(images.min()) == float(images.max()) == 7.0
    assert labels.tolist() == [1]
    settings = [f'task.dataset={{name="{here}:Pairs", count=90}}', "task.model=logistic"]
    make_experiment(read_spec(None, [*SMALL, *settings])).federation.play()


def test_data_of_ones_own_that_is_drawn_comes_out_the_same():
    task = ['task.dataset="tests.data.test_own_data:drawn_anew"', "task.model=logistic"]
    one, other = (make_experiment(read_spec(None, [*SMALL, *task])).dataset.train.images for _ in range(2))
    assert torch.equal(one, other)
    another = make_experiment(read_spec(None, [*SMALL, *task, "seeds.data=5"])).dataset.train.images
    assert not torch.equal(one, another)


def test_a_data_set_says_what_it_is():
    images, labels = torch.zeros(4, 1, 2, 2), torch.zeros(4, dtype=torch.int64)
    with pytest.raises(demoa.ConfigError, match="objective must be one of label, number, value"):
        Dataset(Examples(images, labels), Examples(images, labels), classes=1, objective="labels")
    with pytest.raises(demoa.ConfigError, match=r"labels must be torch\.int64"):
        Dataset(Examples(images, labels.int()), Examples(images, labels.int()), classes=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, "must hold the arrays x and y; it holds: x"),
        ({"x": np.zeros((100, 6, 5), np.float32)}, "must be \\(N, size, size\\)"),
        ({"x": np.zeros((100, 6, 6), int)}, "uint8 or float"),
        ({"y": np.arange(99)}, "one for each of 100 images"),
        ({"y": np.arange(100) - 1}, "from 0 on"),
        ({"x_test": np.zeros((7, 6, 6), np.float32)}, "must hold the arrays x_test and y_test"),
    ],
)
def test_wrong_files_are_refused(tmp_path, changes, message):
    with pytest.raises(demoa.ConfigError, match=message):
        load_dataset(str(npz(tmp_path / "own.npz", **changes)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["task.dataset=none.npz"], "cannot be read as an .npz file"),
        (["task.dataset=none:none"], "cannot be imported"),
        (['task.dataset="math:sqrt"'], "must be a function or class that takes its options"),
        (['task.dataset="time:time"'], "must return a demoa Dataset, or one or two torch Datasets, got float"),
        (['task.dataset="tests.data.test_own_data:an_iterator"'], "must have a length and examples by index"),
        (["task.model=torch.nn:Nothing"], "cannot be imported"),
        (['task.dataset="tests.data.test_own_data:Numbers"'], "must be \\(N,\\) whole numbers from 0 on"),
        (['task.model="tests.data.test_own_data:WithStatistics"'], "keeps running statistics"),
        (["task.model=torch.nn:Flatten"], "must take \\(channels, size, classes, options\\)"),
        (["task.model=cnn"], "unknown model 'cnn'"),
    ],
)
def test_wrong_names_are_refused(settings, message):
    with pytest.raises(demoa.ConfigError, match=message):
        make_experiment(read_spec(None, [*SMALL, *settings]))
