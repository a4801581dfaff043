"""The table of the rows that a selection picks out of a cache, and what it can tell without looking at them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from demoa.aggregation.cache import MANY, RowCache
from demoa.aggregation.reach import SLACK
from demoa.aggregation.table import Table, congruence, with_centre
from demoa.core.types import Floats, Matrix


def table_of(cache: RowCache, selection: Matrix, centre: int | None) -> Table:
    """Return the table of the rows selection @ rows, (m, N), and of the row that is the centre, if there is one."""
    if selection.shape[0] >= MANY and (np.diff(selection.indptr) == 1).all():
        return LazyTable(cache, selection, centre)
    return Table(selection.shape[0], _products(cache, selection, centre))


class LazyTable(Table):
    """A table of many rows, which looks only at those that may matter.

    Which those are depends on what is still known of them, and that is not saved; what is found does not depend on it.
    """

    def __init__(self, cache: RowCache, selection: Matrix, centre: int | None) -> None:
        """Take a selection that picks one stored row for each of its own."""
        super().__init__(selection.shape[0], _products(cache, selection, centre))
        self._cache, self._centre, self._selection = cache, centre, selection

    def nearest(self, neighbours: int) -> int:
        """Return the row with the least sum of squared distances to its nearest other rows."""
        if not np.array_equal(self._selection.indices, np.arange(self.rows)):
            return super().nearest(neighbours)
        return self._cache.nearest(self._selection.data, neighbours)

    def distances_beyond(self, weights: Floats, radius: float) -> Floats:
        """Distance of each row to a combination of all points, (m,): exact where it is more than `radius`."""
        store, source, scale = self._cache.store, self._selection.indices.astype(np.intp), self._selection.data
        stored = weights[:-1] @ self._selection
        if self._centre is not None:
            stored[self._centre] += weights[-1]
        point = self._cache.combine(stored)
        length = float(np.sqrt(store.squared_norm(point)))
        by_path = self._cache.reach.bounds(source, scale, point)
        by_length = (1.0 + SLACK) * (scale * self._cache.lengths(source) + length)
        bounds = np.minimum(by_path, by_length)
        doubtful = np.flatnonzero(bounds > radius)
        found: Floats = np.minimum(bounds, radius)
        rows, factors = source[doubtful], scale[doubtful]
        squares = factors**2 * self._cache.squares(rows) - 2.0 * factors * store.inner(point, rows) + length**2
        found[doubtful] = np.sqrt(np.maximum(squares, 0.0))
        self._cache.reach.note(rows, factors, found[doubtful], length)
        return found


def _products(cache: RowCache, selection: Matrix, centre: int | None) -> Callable[[], Floats]:
    points = with_centre(selection, centre, cache.store.rows)
    return lambda: congruence(points, cache.products())
