"""Models for problems whose constants are known."""

from __future__ import annotations

import torch
from torch import nn


class Quadratic(nn.Module):
    """A point x that pays 1/2 <l, x * x> + <z, x> for the example (l, z): for the data set `quadratics`.

    Args:
        channels: 1.
        size: The length of x.
        classes: Not used.
        distance: How far from 0, where the minimum is, x starts, in a random direction.
    """

    def __init__(self, channels: int, size: int, classes: int, distance: float = 1.0) -> None:
        """Draw the start."""
        super().__init__()
        start = torch.randn(size)
        self.x = nn.Parameter(distance * start / start.norm())

    def forward(self, examples: torch.Tensor) -> torch.Tensor:
        """Return what each of the examples, (b, 1, 2, size), costs at x: (b, 1)."""
        curvature, slope = examples[:, 0, 0], examples[:, 0, 1]
        return (0.5 * curvature * self.x**2 + slope * self.x).sum(dim=1, keepdim=True)


class Linear(nn.Module):
    """A linear function without a constant, which starts at 0: for the data set `least_squares`.

    Args:
        channels: Channels of an example.
        size: Its length.
        classes: Not used.
    """

    def __init__(self, channels: int, size: int, classes: int) -> None:
        """Start at 0."""
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(channels * size))

    def forward(self, examples: torch.Tensor) -> torch.Tensor:
        """Return one number per example: (b, 1)."""
        return (examples.flatten(1) @ self.weights)[:, None]
