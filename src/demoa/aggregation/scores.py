"""Which of many rows is nearest to its neighbours, without looking at all pairs of them in every round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.kernels.neighbours import least_sum, scaled_sums, share_of
from demoa.core.types import Floats

SAME = 1e-12
"""Rows whose scales have changed by the same number, to this share of it, have decayed together."""

ROUNDING = 8 * float(np.finfo(float).eps)
"""What a distance may be off by, as a share of the squared norms that it is the difference of."""

OFTEN = 4096
"""After so many rounds all is computed anew."""


class NearestScores:
    """For each row, a bound on the sum of its m smallest squared distances to other rows.

    The sum of the m smallest of some numbers D_j is the largest value, over t, of

        m t - sum_j max(0, t - D_j),

    taken at the m-th smallest of them. At a t that was right some rounds ago it is a lower bound, which takes one
    step per row that has changed to keep up to date. Distances between rows that decay together shrink together.
    Rows whose bound is above the least sum cannot have it, and are not looked at: what is found does not depend on
    what was known.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._neighbours, self._rounds, self._exchanged = 0, 0, 0
        self._scale = self._squares = self._sums = self._thresholds = np.zeros(0)
        self._known = np.zeros(0, bool)

    def forget(self, row: int, products: Floats) -> None:
        """Take a row out, before it is changed; the products are still those of the rows as they were."""
        if row < len(self._known) and self._known[row]:
            self._known[row] = False
            share_of(products, self._squares, self._scale, row, 1.0, self._thresholds, self._sums)

    def least(self, products: Floats, scale: Floats, neighbours: int) -> int:
        """Return the row with the least sum, of several the first, among scale_j * row j.

        Args:
            products: Inner products of the rows, and maybe of others after them.
            scale: One number per row, (n,).
            neighbours: How many distances are added up, m.
        """
        self._rounds += 1
        if len(scale) != len(self._scale) or neighbours != self._neighbours or self._rounds > OFTEN:
            self._start_anew(len(scale), neighbours)
        self._decay(products, scale)
        self._scale, self._squares = scale.copy(), scale**2 * np.diag(products)[: len(scale)]
        table = (products, self._squares, self._scale)
        changed = np.flatnonzero(~self._known)
        if len(changed) < len(scale):
            self._exchanged += len(changed)
            for row in changed:
                share_of(*table, row, -1.0, self._thresholds, self._sums)
        scaled_sums(*table, neighbours, changed, self._sums, self._thresholds)
        self._known[:] = True
        # Each distance in a sum, and each that was exchanged since, may be off.
        off = ROUNDING * (neighbours + 2 * self._exchanged) * (self._squares + self._squares.max())
        bounds = self._sums - off
        return int(least_sum(*table, neighbours, bounds, self._sums, self._thresholds))

    def _start_anew(self, rows: int, neighbours: int) -> None:
        self._neighbours, self._rounds, self._exchanged = neighbours, 0, 0
        self._scale, self._squares, self._sums, self._thresholds = np.zeros((4, rows))
        self._known = np.zeros(rows, bool)

    def _decay(self, products: Floats, scale: Floats) -> None:
        """Follow the number by which most rows have decayed; rows that have not are taken out."""
        held = np.flatnonzero(self._known & (self._scale > 0))
        factor = float(np.median(scale[held] / self._scale[held])) if len(held) else 0.0
        odd = np.flatnonzero(self._known & ~_same(scale, factor * self._scale))
        if factor <= 0.0 or 4 * len(odd) > len(scale):
            self._known[:] = False
            return
        for row in odd:
            self.forget(int(row), products)
        self._sums *= factor**2
        self._thresholds *= factor**2


def _same(one: Floats, other: Floats) -> NDArray[np.bool_]:
    return np.abs(one - other) <= SAME * np.abs(one)
