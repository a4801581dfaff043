"""What is trained. `MODELS` is the whole list."""

from collections.abc import Mapping

from torch import nn

from demoa.models.convnet import ConvNet
from demoa.models.dense import Logistic, Mlp
from demoa.models.resnet18 import ResNet18
from demoa.models.synthetic import Linear, Quadratic

MODELS: Mapping[str, type[nn.Module]] = {
    "convnet": ConvNet,
    "linear": Linear,
    "logistic": Logistic,
    "mlp": Mlp,
    "quadratic": Quadratic,
    "resnet18": ResNet18,
}
"""Every model by its name."""

__all__ = ["MODELS", "ConvNet", "Linear", "Logistic", "Mlp", "Quadratic", "ResNet18"]
