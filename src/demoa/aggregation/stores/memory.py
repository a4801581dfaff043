"""Planes in main memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.codecs.codec import Plane, Planes
from demoa.aggregation.stores.saved import matching


class MemoryPlanes:
    """Planes in main memory, taken from the system as rows are first written."""

    lost: tuple[int, ...] = ()

    def __init__(self, rows: int, planes: Mapping[str, Plane]) -> None:
        """Begin with zeros."""
        self._kinds, self._rows = dict(planes), rows
        self.arrays: Planes = {name: np.zeros((rows, plane.columns), plane.dtype) for name, plane in planes.items()}

    def resized(self, rows: int) -> MemoryPlanes:
        """Return planes of zeros for another number of rows."""
        return MemoryPlanes(rows, self._kinds)

    def write(self, index: int) -> Planes:
        """Return the planes, of which row `index` is about to be written."""
        return self.arrays

    def written(self, index: int) -> None:
        """Take note that row `index` is written."""

    def passed(self) -> None:
        """Take note that many rows were read or written."""

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved to get the same rows back."""
        return dict(self.arrays)

    def settle(self) -> None:
        """Take note that what was returned by `saved` is saved."""

    def loaded(self, arrays: Mapping[str, NDArray[Any]]) -> MemoryPlanes:
        """Return planes that hold what was saved; these are left as they are."""
        shapes = {name: (self._rows, plane.columns) for name, plane in self._kinds.items()}
        checked = {name: matching(arrays, name, shapes[name], plane.dtype) for name, plane in self._kinds.items()}
        found = MemoryPlanes(0, self._kinds)
        found._rows, found.arrays = self._rows, checked
        return found
