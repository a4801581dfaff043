"""How far rows can be from a point that moves, going by where they once were."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.store import Store
from demoa.core.types import Floats

SLACK = 1e-5
"""What bounds are widened by: more than the rounding of a vector to float32 can make of a distance."""


class Reach:
    """For each row of a store, how far it can be from a point.

    A row x that was at distance e from a point v is, after it has decayed to r x and the point has moved on to v', at
    most r e + |1 - r| |v| + |v' - v| away.
    """

    def __init__(self, store: Store) -> None:
        """Begin with nothing known."""
        self._store = store
        self._distance, self._scale = np.full(store.rows, np.inf), np.ones(store.rows)
        self._length, self._path = np.zeros(store.rows), np.zeros(store.rows)
        self._point: Any | None = None
        self._travelled = 0.0

    def forget(self, index: int) -> None:
        """Take note that a row is about to change."""
        self._distance[index] = np.inf

    def bounds(self, source: NDArray[np.intp], scale: Floats, point: Any) -> Floats:
        """Return, for the rows scale_j * row source_j, (m,), how far at most each is from a point."""
        store = self._store
        if self._point is not None and self._point is not point:
            self._travelled += float(np.sqrt(store.squared_norm(store.blended(point, 1.0, -1.0, self._point))))
        self._point = point
        ratio = np.divide(scale, self._scale[source], out=np.ones_like(scale), where=self._scale[source] > 0)
        moved = np.abs(1.0 - ratio) * self._length[source] + self._travelled - self._path[source]
        known = np.isfinite(self._distance[source])
        bounds = np.full(len(source), np.inf)
        bounds[known] = (1.0 + SLACK) * (ratio[known] * self._distance[source[known]] + moved[known])
        return bounds

    def note(self, source: NDArray[np.intp], scale: Floats, distances: Floats, length: float) -> None:
        """Take how far some rows are from the point that was last asked about."""
        self._distance[source], self._scale[source] = distances, scale
        self._length[source], self._path[source] = length, self._travelled
