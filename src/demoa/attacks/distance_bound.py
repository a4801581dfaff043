"""MinMax and MinSum: as far from the mean as the spread of the honest rows lets it go unnoticed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.checks import require
from demoa.core.types import Floats

DIRECTIONS = ("deviation", "mean", "sign")


@dataclass(frozen=True)
class DistanceBound(RowAttack):
    """mean + gamma p with the largest gamma that a bound on distances to honest rows allows.

    Args:
        direction: p is minus the deviation per coordinate, the unit vector of the mean, or the sign of the mean.
    """

    direction: str = "deviation"

    def __post_init__(self) -> None:
        require(self.direction in DIRECTIONS, "direction", self.direction, "one of " + ", ".join(DIRECTIONS))

    def row(self, view: AttackView) -> Any:
        """Solve for gamma: all squared distances are quadratic in it."""
        mean, deviation = view.honest.mean_and_deviation()
        norm = float((mean * mean).sum()) ** 0.5
        push = {"deviation": -deviation, "mean": -mean / max(norm, 1e-30), "sign": -(mean / (abs(mean) + 1e-30))}
        p = push[self.direction]
        products = view.honest.products()
        norms = np.diag(products)
        squares = np.maximum(norms[:, None] + norms[None, :] - 2 * products, 0.0)
        to_mean = np.maximum(norms - 2 * products.mean(axis=1) + products.mean(), 0.0)
        along = view.honest.inner(p)
        gamma = self.largest(float((p * p).sum()), along.mean() - along, to_mean, squares)
        return mean + gamma * p

    @abstractmethod
    def largest(self, length: float, slopes: Floats, to_mean: Floats, squares: Floats) -> float:
        """Return the largest gamma; |mean + gamma p - x_i|^2 = length gamma^2 + 2 slopes_i gamma + to_mean_i.

        Args:
            length: |p|^2.
            slopes: <p, mean - x_i>, (h,).
            to_mean: |mean - x_i|^2, (h,).
            squares: |x_i - x_j|^2, (h, h).
        """


@dataclass(frozen=True)
class MinMax(DistanceBound):
    """mean + gamma p, no farther from any honest row than the two farthest honest rows are from each other.

    Reference: Shejwalkar, Houmansadr, NDSS 2021.
    """

    def largest(self, length: float, slopes: Floats, to_mean: Floats, squares: Floats) -> float:
        """Return the smallest of the roots, one per honest row."""
        return min(
            root(length, slope, near - float(squares.max())) for slope, near in zip(slopes, to_mean, strict=True)
        )


@dataclass(frozen=True)
class MinSum(DistanceBound):
    """mean + gamma p with a sum of squared distances no larger than that of the most remote honest row.

    Reference: Shejwalkar, Houmansadr, NDSS 2021.
    """

    def largest(self, length: float, slopes: Floats, to_mean: Floats, squares: Floats) -> float:
        """Return the root of the sum."""
        bound = float(squares.sum(axis=1).max())
        return root(len(slopes) * length, float(slopes.sum()), float(to_mean.sum()) - bound)


def root(a: float, b: float, c: float) -> float:
    """Return the largest x >= 0 with a x^2 + 2 b x + c <= 0; 0 if there is none.

    >>> root(1.0, 0.0, -9.0)
    3.0
    """
    if a <= 0.0 or b * b - a * c < 0.0:
        return 0.0
    return max(0.0, float((-b + np.sqrt(b * b - a * c)) / a))
