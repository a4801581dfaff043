"""Synthetic problems have the constants that they were made with."""

import numpy as np
import pytest
import torch

import demoa
from demoa.core.flatten import FlatModel
from demoa.data import least_squares, quadratics
from demoa.experiment.build import make_experiment
from demoa.experiment.load import read_spec
from demoa.metrics import Heterogeneity, fit_heterogeneity
from demoa.models import MODELS

SMALL = ("clients.n=10", "clients.byzantine=2", "clients.batch_size=16", "sampling.p=0.5", "run.lr=0.5")


def gradients(dataset, x):
    """The gradient of every example at x, (N, d)."""
    curvature, slope = dataset.train.images[:, 0, 0].double(), dataset.train.images[:, 0, 1].double()
    return (curvature * x + slope).numpy()


@pytest.mark.parametrize(("zeta", "b"), [(0.0, 0.0), (2.0, 0.0), (0.0, 0.5), (2.0, 0.5)])
def test_quadratics_have_their_constants_at_every_point(zeta, b):
    dataset = quadratics(clients=6, dimension=5, smoothness=3.0, condition=4.0, sigma=1.5, zeta=zeta, b=b)
    labels = dataset.train.labels.numpy()
    for seed in range(3):
        x = torch.randn(5, generator=torch.Generator().manual_seed(seed)).double()
        every = gradients(dataset, x)
        means = np.array([every[labels == client].mean(axis=0) for client in range(6)])
        gradient = means.mean(axis=0)
        np.testing.assert_allclose(gradient, 3.0 * 4.0 ** -np.linspace(0, 1, 5) * x.numpy(), atol=1e-5)
        spread = ((means - gradient) ** 2).sum(axis=1).mean()
        assert spread == pytest.approx(zeta**2 + b**2 * (gradient**2).sum(), rel=1e-4, abs=1e-5)
        noise = ((every - means[labels]) ** 2).sum(axis=1).mean()
        assert noise == pytest.approx(1.5**2, rel=1e-4)


def test_the_model_differentiates_to_these_gradients():
    dataset = quadratics(clients=4, dimension=3)
    model = FlatModel(MODELS["quadratic"](1, 3, 4))
    images, labels = dataset.train.batch(np.arange(20))
    found = model.differentiate(dataset.losses(model.module(images), labels).mean())
    np.testing.assert_allclose(found, gradients(dataset, model.parameters.double())[:20].mean(axis=0), atol=1e-5)


def test_estimates_find_zeta_and_b_again():
    """From batches along a run, without being told."""
    dataset = '{name="quadratics", clients=8, zeta=2.0, b=0.5, sigma=0.5}'
    settings = [f"task.dataset={dataset}", "task.model={name='quadratic', distance=20.0}", "task.partition=one_label"]
    federation = make_experiment(read_spec(None, [*SMALL, *settings, "attack.name=none"])).federation
    points = []
    for _ in range(40):
        federation.play()
        points.append(federation.heterogeneity())
    zeta, b = fit_heterogeneity(points)
    assert zeta == pytest.approx(2.0, rel=0.05)
    assert b == pytest.approx(0.5, rel=0.05)
    assert np.mean([point["batch_noise"] for point in points]) == pytest.approx(0.25 / 16, rel=0.1)


def test_estimates_have_no_bias_on_small_shards():
    """Batches of a finite shard, drawn independently; at sigma = 10 anything that is shared would show."""
    dataset = '{name="quadratics", clients=8, zeta=1.0, sigma=10.0, examples=64}'
    settings = [f"task.dataset={dataset}", "task.model=quadratic", "task.partition=one_label"]
    federation = make_experiment(read_spec(None, [*SMALL, *settings])).federation
    found = []
    for number in range(400):
        collected = Heterogeneity()
        for client in range(2, 10):
            collected.add(*federation.worker.independent_gradients(client, number, federation.adversary.start))
        found.append(collected.estimates())
    spreads = np.array([point["heterogeneity"] for point in found])
    assert abs(spreads.mean() - 1.0) < 5 * spreads.std() / 20
    noise = np.mean([point["batch_noise"] for point in found])
    # Without replacement, the variance of a mean of 16 of 64 is sigma^2 / 16 (64 - 16) / (64 - 1).
    assert noise == pytest.approx(100 / 16 * 48 / 63, rel=0.05)


def test_estimates_have_no_bias_where_clients_are_alike():
    draw = np.random.default_rng(0)
    found = []
    for _ in range(2000):
        collected = Heterogeneity()
        for _ in range(5):
            collected.add(*(1.0 + draw.standard_normal((2, 3))))
        found.append(collected.estimates())
    mean = {name: np.mean([point[name] for point in found]) for name in found[0]}
    # Standard errors of the means over 2,000 draws are below 0.03.
    assert mean["heterogeneity"] == pytest.approx(0.0, abs=0.1)
    assert mean["gradient_square"] == pytest.approx(3.0, abs=0.1)
    assert mean["batch_noise"] == pytest.approx(3.0, abs=0.1)


def test_training_finds_the_minimum_of_both(tmp_path):
    for task in (
        ['task.dataset={name="quadratics", clients=8, zeta=0.5, sigma=0.1}', "task.model=quadratic"],
        ["task.dataset=least_squares", "task.model=linear", "run.lr=0.2"],
    ):
        partition = "one_label" if "quadratics" in task[0] else "iid"
        settings = [*SMALL, *task, f"task.partition={partition}", "attack.name=none", "aggregation.rule=mean"]
        experiment = make_experiment(read_spec(None, [*settings, "aggregation.f=0"]))
        start = experiment.federation.server.parameters.clone()
        for _ in range(300):
            experiment.federation.play()
        worker, test = experiment.federation.worker, experiment.dataset.test

        def loss(x, worker=worker, test=test, dataset=experiment.dataset):
            worker.model.set_parameters(x)
            images, labels = test.batch(slice(None))
            return float(dataset.losses(worker.model.module(images), labels).mean().detach())

        assert loss(experiment.federation.server.parameters) < 0.02 * loss(start)


def test_interpolation_means_that_all_gradients_vanish():
    dataset = least_squares(dimension=4, examples=50)
    solution = torch.linalg.lstsq(dataset.train.images[:, 0, 0], dataset.train.labels[:, None]).solution[:, 0]
    assert float((dataset.test.images[:, 0, 0] @ solution - dataset.test.labels).abs().max()) < 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quadratics(clients=5, b=1.0), "even where b is not 0"),
        (lambda: quadratics(clients=2), "at least 3 where zeta is not 0"),
        (lambda: quadratics(sigma=-1.0), "quadratics: sigma must be"),
        (lambda: quadratics(condition=0.5), "condition must be a number, at least 1"),
        (lambda: least_squares(noise=-1.0), "noise must be"),
    ],
)
def test_constants_that_cannot_be_had_are_refused(make, message):
    with pytest.raises(demoa.ConfigError, match=message):
        make()
