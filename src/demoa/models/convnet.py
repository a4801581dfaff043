"""The paper's network for MNIST."""

from __future__ import annotations

import torch
from torch import nn

from demoa.models.dropout import Dropout


class ConvNet(nn.Module):
    """conv 3x3x32, relu, conv 3x3x64, relu, max-pool 2, dropout, fc 128, relu, dropout, fc: 1,199,882 for MNIST.

    Args:
        channels: Channels of an image.
        size: Height and width of an image.
        classes: How many labels there are.
    """

    def __init__(self, channels: int, size: int, classes: int) -> None:
        """Make the layers."""
        super().__init__()
        side = (size - 4) // 2
        self.features = nn.Sequential(
            nn.Conv2d(channels, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            Dropout(0.25),
        )
        self.classifier = nn.Sequential(
            nn.Linear(side * side * 64, 128), nn.ReLU(), Dropout(0.5), nn.Linear(128, classes)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return one score per label: (batch, classes)."""
        # Position by position, as features lie in memory: there is nothing to be copied, forwards or backwards.
        features = self.features(images).permute(0, 2, 3, 1).flatten(1)
        scores: torch.Tensor = self.classifier(features)
        return scores
