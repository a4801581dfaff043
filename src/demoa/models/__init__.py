"""What is trained. `MODELS` is the whole list."""

from collections.abc import Mapping

from torch import nn

from demoa.models.convnet import ConvNet
from demoa.models.dense import Logistic, Mlp
from demoa.models.resnet18 import ResNet18

MODELS: Mapping[str, type[nn.Module]] = {
    "convnet": ConvNet,
    "logistic": Logistic,
    "mlp": Mlp,
    "resnet18": ResNet18,
}
"""Every model by its name."""

__all__ = ["MODELS", "ConvNet", "Logistic", "Mlp", "ResNet18"]
