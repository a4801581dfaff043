"""A look at the rows of some clients, for attacks, metrics and audits: it reads and never writes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.cache import RowCache
from demoa.core.types import Floats


class Inspection:
    """The momentum rows of some clients, as the rule would see them now.

    Nothing is copied until a vector is asked for. What was looked at changes with the next vector that the server
    takes.
    """

    def __init__(self, cache: RowCache, chosen: NDArray[np.intp], scale: Floats) -> None:
        """Take the stored rows, which of them, (k,), and at what scale, (k,)."""
        self._cache = cache
        self._store = cache.store
        self._chosen = chosen
        self._scale = scale

    def __len__(self) -> int:
        return len(self._chosen)

    def row(self, place: int) -> Any:
        """Return one of the rows, (d,)."""
        stored = self._store.read(int(self._chosen[place]))
        return self._store.blended(stored, float(self._scale[place]), 0.0, stored)

    def combination(self, weights: Floats) -> Any:
        """Return weights @ rows, (d,)."""
        return self._store.combine(self._stored(weights))

    def _stored(self, weights: Floats) -> Floats:
        """Return weights of these rows as weights of all stored ones, (rows,)."""
        stored = np.zeros(self._store.rows)
        stored[self._chosen] = weights * self._scale
        return stored

    def mean(self) -> Any:
        """Return the mean of the rows, (d,)."""
        return self.combination(np.full(len(self), 1.0 / len(self)))

    def distance_from_mean(self, vector: Any) -> float:
        """Return how far a vector, (d,), is from the mean of the rows."""
        weights = self._stored(np.full(len(self), 1.0 / len(self)))
        return float(np.sqrt(self._store.squared_distance(weights, self._store.adopt(vector))))

    def length_beside_mean(self, vector: Any) -> float | None:
        """Return how many times as long as the mean of the rows a vector, (d,), is; None if that mean is 0."""
        square = self._store.squared_norm(self._store.adopt(self.mean()))
        return float(np.sqrt(self._store.squared_norm(self._store.adopt(vector)) / square)) if square > 0 else None

    def mean_and_deviation(self) -> tuple[Any, Any]:
        """Return mean and unbiased standard deviation of the rows, per coordinate, (d,) each."""
        return self._store.moments(self._chosen, self._scale)

    def products(self) -> Floats:
        """Return the inner products of the rows, (k, k)."""
        return np.outer(self._scale, self._scale) * self._cache.products_of(self._chosen)

    def inner(self, vector: Any) -> Floats:
        """Return the inner product of each row with a vector, (k,)."""
        return self._scale * self._store.inner(self._store.adopt(vector), self._chosen)
