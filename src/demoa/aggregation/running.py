"""A combination of all rows that is kept up to date, so that a round costs as much as the rows that changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.saved import matching
from demoa.aggregation.stores.store import Store
from demoa.core.types import Floats

SAME = 1e-12
"""Weights that differ by less than this share of them count as equal."""

LARGE = 1e6
"""A row that adds so many times the length of the whole costs too many digits: all is added up anew."""

OFTEN = 256
"""After so many changes, or as many as there are rows, all is added up anew: each leaves 1e-16 of rounding behind."""


class RunningCombination:
    """weights @ rows in float64, for the weights that were asked for last.

    From one round to the next most weights stay as they are, but for one number by which all rows decay: the next
    combination is the last one, times that number, plus what the other rows add to it.
    """

    def __init__(self, store: Store) -> None:
        """Begin with nothing."""
        self._store = store
        self._often = max(OFTEN, store.rows)
        self._weights = np.zeros(store.rows)
        self._total: Any | None = None
        self._changes = 0
        self._length = 0.0

    def forget(self, index: int, length: Callable[[], float]) -> None:
        """Take a row out, before it is changed; `length` gives its norm."""
        weight = self._weights[index]
        if self._total is None or weight == 0.0:
            return
        if self._changes >= self._often or abs(weight) * length() > LARGE * self._length:
            self._total = None
            return
        only = np.zeros(len(self._weights))
        only[index] = -weight
        self._add(1.0, only)
        self._weights[index] = 0.0
        self._changes += 1

    def combine(self, weights: Floats, rows: int, lengths: Callable[[NDArray[np.intp]], Floats]) -> Any:
        """Return weights @ rows, (d,), of which so many are not zero; `lengths` gives the norms of some."""
        used = np.count_nonzero(weights)
        if self._total is not None:
            factor = self._factor(weights)
            rest = weights - factor * self._weights
            rest[np.abs(rest) <= SAME * np.abs(weights)] = 0.0
            changed = np.flatnonzero(rest)
            longest = float((np.abs(rest[changed]) * lengths(changed)).max(initial=0.0))
            if 2 * len(changed) < used and self._changes < self._often and longest <= LARGE * self._length:
                return self._keep(factor, rest)
        if 2 * used < rows:
            return self._store.combine(weights)
        self._total, self._weights, self._changes = None, np.zeros(len(weights)), 0
        return self._keep(0.0, weights)

    def _keep(self, factor: float, rest: Floats) -> Any:
        if self._total is None or factor != 1.0 or rest.any():
            self._add(factor, rest)
            self._weights = factor * self._weights + rest
            self._changes += 1
        answer = self._store.rounded(self._total)
        self._length = float(np.sqrt(self._store.squared_norm(answer)))
        return answer

    def _add(self, factor: float, weights: Floats) -> None:
        total, self._total = self._total, None  # where this is cut short, nothing half done is left
        self._total = self._store.accumulate(total, factor, weights)

    def _factor(self, weights: Floats) -> float:
        """Return the number by which most weights changed."""
        held = np.flatnonzero(self._weights)
        return float(np.median(weights[held] / self._weights[held])) if len(held) else 0.0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved to go on bit for bit."""
        if self._total is None:
            return {}
        total = self._total.cpu().numpy() if hasattr(self._total, "cpu") else self._total
        return {
            "running.total": total,
            "running.weights": self._weights,
            "running.counts": np.array([self._changes, self._length]),
        }

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was saved, if anything was."""
        if "running.total" not in arrays:
            return
        kind = np.dtype(np.float64)
        self._total = self._store.adopt(matching(arrays, "running.total", (self._store.width,), kind).copy())
        self._weights = matching(arrays, "running.weights", (self._store.rows,), kind)
        changes, length = matching(arrays, "running.counts", (2,), kind)
        self._changes, self._length = int(changes), float(length)
