"""The table of the rows that a selection picks out of a cache."""

from __future__ import annotations

from demoa.aggregation.cache import RowCache
from demoa.aggregation.table import Table, congruence, with_centre
from demoa.core.types import Matrix


def table_of(cache: RowCache, selection: Matrix, centre: int | None) -> Table:
    """Return the table of the rows selection @ rows, (m, N), and of the row that is the centre, if there is one."""
    points = with_centre(selection, centre, cache.store.rows)
    return Table(selection.shape[0], lambda: congruence(points, cache.products()))
