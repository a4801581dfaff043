"""ResNet-18 for small images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional

from demoa.core.checks import require

GROUPS = 8
"""Channels are normalised in this many groups."""

NORMS: Mapping[str, Callable[[int], nn.Module]] = {
    "batch": lambda channels: nn.BatchNorm2d(channels, track_running_stats=False),
    "group": lambda channels: nn.GroupNorm(GROUPS, channels),
}
"""What normalises a layer, by name."""


class ResNet18(nn.Module):
    """ResNet-18 with a 3x3 stem and no early pooling, as is usual for CIFAR-10: 11,173,962 parameters there.

    Args:
        channels: Channels of an image.
        size: Height and width of an image (any, as the last layer averages over it).
        classes: How many labels there are.
        norm: "group", or "batch": statistics of the batch at hand, also in evaluation. Running averages would differ
            between clients, and nobody would aggregate them.

    Reference: He, Zhang, Ren, Sun, CVPR 2016.
    """

    def __init__(self, channels: int, size: int, classes: int, norm: str = "group") -> None:
        """Make the layers."""
        super().__init__()
        require(norm in NORMS, "resnet18: norm", norm, "one of " + ", ".join(NORMS))
        self.stem = nn.Sequential(nn.Conv2d(channels, 64, 3, padding=1, bias=False), NORMS[norm](64), nn.ReLU())
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.stages = nn.Sequential(
            *(
                layer
                for before, after, stride in widths
                for layer in (Block(before, after, stride, norm), Block(after, after, 1, norm))
            )
        )
        self.classifier = nn.Linear(512, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return one score per label: (batch, classes)."""
        features = self.stages(self.stem(images)).mean(dim=(2, 3))
        scores: torch.Tensor = self.classifier(features)
        return scores


class Block(nn.Module):
    """Two convolutions and the way around them."""

    def __init__(self, before: int, after: int, stride: int, norm: str) -> None:
        """Make the layers; the way around is a 1x1 convolution where the shape changes."""
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            NORMS[norm](after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            NORMS[norm](after),
        )
        self.around: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), NORMS[norm](after))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the sum of both ways."""
        return functional.relu(self.main(images) + self.around(images))
