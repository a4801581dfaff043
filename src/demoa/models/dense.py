"""Models without convolutions."""

from __future__ import annotations

import torch
from torch import nn


class Logistic(nn.Module):
    """Multinomial logistic regression on the raw pixels.

    Args:
        channels: Channels of an image.
        size: Height and width of an image.
        classes: How many labels there are.
    """

    def __init__(self, channels: int, size: int, classes: int) -> None:
        """Make the layer."""
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return one score per label: (batch, classes)."""
        scores: torch.Tensor = self.layers(images)
        return scores


class Mlp(nn.Module):
    """A network with one hidden layer.

    Args:
        channels: Channels of an image.
        size: Height and width of an image.
        classes: How many labels there are.
        hidden: Width of the hidden layer.
    """

    def __init__(self, channels: int, size: int, classes: int, hidden: int = 64) -> None:
        """Make the layers."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(channels * size * size, hidden), nn.ReLU(), nn.Linear(hidden, classes)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return one score per label: (batch, classes)."""
        scores: torch.Tensor = self.layers(images)
        return scores
