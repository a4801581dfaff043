import numpy as np
import pytest
import torch
from torch.nn import functional

from demoa.core.flatten import FlatModel
from demoa.core.torch_seed import seeded_torch
from demoa.models import MODELS
from demoa.models.dropout import Dropout


def count(name, *shape):
    return sum(parameter.numel() for parameter in MODELS[name](*shape).parameters())


def test_sizes_are_the_papers():
    assert count("convnet", 1, 28, 10) == 1_199_882
    assert count("resnet18", 3, 32, 10) == 11_173_962
    assert count("logistic", 1, 8, 10) == 650


IMAGE_MODELS = sorted(set(MODELS) - {"linear", "quadratic"})


def in_order(tensor):
    """The entries of a parameter or its gradient as a flat model has them: filters last channel first."""
    return (tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor).reshape(-1)


@pytest.mark.parametrize("name", IMAGE_MODELS)
@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_a_flat_gradient_is_what_autograd_gives(name, memory_format):
    """To the last bit where torch uses the same kernels; else up to the rounding of sums in another order.

    In float64 there: what rounding leaves on either side of a ReLU's kink has another gradient altogether. Dropout
    masks go by the order in memory, so they are left out where that differs.
    """
    same = memory_format == torch.channels_last
    dtype = torch.float32 if same else torch.float64
    with seeded_torch(0, "model"):
        plain = MODELS[name](1, 12, 4).to(dtype=dtype, memory_format=memory_format)
    with seeded_torch(0, "model"):
        flat = FlatModel(MODELS[name](1, 12, 4).to(dtype=dtype))
    for module in (plain, flat.module):
        module.train(same)
    images = torch.randn(8, 1, 12, 12, generator=torch.Generator().manual_seed(1), dtype=dtype)
    labels = torch.arange(8) % 4
    with seeded_torch(0, "dropout"):
        functional.cross_entropy(plain(images), labels).backward()
    expected = torch.cat([in_order(parameter.grad) for parameter in plain.parameters()])
    for _ in range(2):  # the second call must not add to the first
        with seeded_torch(0, "dropout"):
            found = flat.differentiate(functional.cross_entropy(flat.module(images), labels))
        if same:
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
        else:  # sums of up to 12^2 * 512 products, layer after layer, in two orders
            assert float((found - expected).norm()) <= 1e-11 * float(expected.norm())


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


def test_the_convnet_is_the_usual_one_up_to_the_order_of_features():
    """Its first dense layer reads features position by position, not channel by channel."""
    model = MODELS["convnet"](1, 28, 10).eval()
    images = torch.randn(3, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    features = model.features(images)
    dense = model.classifier[0]
    usual = dense.weight.view(128, 12, 12, 64).permute(0, 3, 1, 2).reshape(128, -1)
    hidden = functional.relu(features.flatten(1) @ usual.T + dense.bias)
    torch.testing.assert_close(model.classifier[3](hidden), model(images), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [0.25, 0.5, 0.1])  # the last is not a multiple of 1 / 256: torch's own is used
@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_dropout_drops_its_share_and_keeps_the_mean(p, memory_format):
    layer = Dropout(p)
    values = torch.ones(50, 16, 20, 20).contiguous(memory_format=memory_format).requires_grad_()
    with seeded_torch(0, "dropout"):
        dropped = layer(values)
    with seeded_torch(0, "dropout"):
        assert torch.equal(layer(values), dropped)
    with seeded_torch(1, "dropout"):
        assert not torch.equal(layer(values), dropped)
    share = float((dropped == 0).float().mean())
    assert abs(share - p) < 5 * (p * (1 - p) / values.numel()) ** 0.5
    assert set(dropped.unique().tolist()) == {0.0, float(torch.tensor(1.0) / (1 - p))}
    dropped.sum().backward()
    torch.testing.assert_close(values.grad, dropped.detach())
    assert torch.equal(layer.eval()(values), values)
