import numpy as np
import pytest
import torch
from torch.nn import functional

from demoa.core.flatten import FlatModel
from demoa.core.torch_seed import seeded_torch
from demoa.models import MODELS


def count(name, *shape):
    return sum(parameter.numel() for parameter in MODELS[name](*shape).parameters())


def test_sizes_are_the_papers():
    assert count("convnet", 1, 28, 10) == 1_199_882
    assert count("resnet18", 3, 32, 10) == 11_173_962
    assert count("logistic", 1, 8, 10) == 650


IMAGE_MODELS = sorted(set(MODELS) - {"linear", "quadratic"})


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_a_flat_gradient_is_what_autograd_gives(name):
    with seeded_torch(0, "model"):
        plain = MODELS[name](1, 12, 4)
    with seeded_torch(0, "model"):
        flat = FlatModel(MODELS[name](1, 12, 4))
    images, labels = torch.randn(8, 1, 12, 12, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 4
    with seeded_torch(0, "dropout"):
        functional.cross_entropy(plain(images), labels).backward()
    expected = torch.cat([parameter.grad.reshape(-1) for parameter in plain.parameters()])
    for _ in range(2):  # the second call must not add to the first
        with seeded_torch(0, "dropout"):
            found = flat.differentiate(functional.cross_entropy(flat.module(images), labels))
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_setting_parameters_changes_the_module():
    flat = FlatModel(MODELS["logistic"](1, 4, 3))
    flat.set_parameters(torch.zeros(len(flat)))
    assert flat.module(torch.ones(2, 1, 4, 4)).abs().max() == 0.0


def test_the_global_generator_is_put_back():
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    with seeded_torch(0, "x"):
        torch.rand(3)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_batch_norm_keeps_nothing_between_clients():
    model = MODELS["resnet18"](1, 8, 3, norm="batch")
    assert count("resnet18", 1, 8, 3) == sum(parameter.numel() for parameter in model.parameters())
    assert not dict(model.named_buffers())
    images = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(model.train()(images), model.eval()(images))
