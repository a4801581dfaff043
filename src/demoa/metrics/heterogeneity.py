"""How far honest clients differ: estimates of the constants of the theory, at the points that a run goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


class Heterogeneity:
    """Collects two independent gradients of each honest client at one point.

    With two of them, products of means have no bias: the noise of one batch does not meet itself.
    """

    def __init__(self) -> None:
        """Start with no client."""
        self._clients = 0
        self._products = 0.0
        self._noise = 0.0
        self._sums: tuple[Any, Any] | None = None

    def add(self, one: Any, other: Any) -> None:
        """Take two gradients, (d,), of one client on batches of one size, drawn independently."""
        self._clients += 1
        self._products += float((one * other).sum())
        self._noise += 0.5 * float(((one - other) ** 2).sum())
        before = self._sums or (0.0 * one, 0.0 * other)
        self._sums = (before[0] + one, before[1] + other)

    def estimates(self) -> dict[str, float]:
        """Return |grad f|^2, the mean of |grad f_i - grad f|^2, and the mean of |g_i - grad f_i|^2 for one batch."""
        assert self._sums is not None, "no client was added"
        square = float((self._sums[0] * self._sums[1]).sum()) / self._clients**2
        return {
            "gradient_square": square,
            "heterogeneity": self._products / self._clients - square,
            "batch_noise": self._noise / self._clients,
        }


def fit_heterogeneity(points: Iterable[Mapping[str, float]]) -> tuple[float, float]:
    """Return zeta and B of the closest zeta^2 + B^2 |grad f|^2 to the heterogeneity at some points, neither below 0.

    >>> zeta, b = fit_heterogeneity([{"gradient_square": g, "heterogeneity": 4 + 9 * g} for g in (0.0, 1.0, 3.0)])
    >>> round(zeta, 6), round(b, 6)
    (2.0, 3.0)
    """
    pairs = [(point["gradient_square"], point["heterogeneity"]) for point in points]
    found = [pair for pair in pairs if np.isfinite(pair).all()] or [(0.0, 0.0)]
    gradients, spreads = np.array([max(g, 0.0) for g, _ in found]), np.array([h for _, h in found])
    candidates = [
        np.linalg.lstsq(np.column_stack([np.ones_like(gradients), gradients]), spreads, rcond=None)[0],
        np.array([spreads.mean(), 0.0]),
        np.array([0.0, float(gradients @ spreads) / max(float(gradients @ gradients), 1e-300)]),
        np.zeros(2),
    ]
    allowed = [pair for pair in candidates if (pair >= 0).all()]
    best = min(allowed, key=lambda pair: float(((pair[0] + pair[1] * gradients - spreads) ** 2).sum()))
    return float(np.sqrt(best[0])), float(np.sqrt(best[1]))
