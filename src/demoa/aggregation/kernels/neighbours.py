"""Sums of the smallest numbers of each row of a table."""

from __future__ import annotations

import numpy as np
from numba import njit

from demoa.aggregation.kernels.chunks import map_chunks
from demoa.core.types import Floats

ROWS = 64
"""Rows per task."""


def nearest_sums(squared_distances: Floats, neighbours: int) -> Floats:
    """Return, per row of a square table, the sum of its `neighbours` smallest entries off the diagonal, (n,)."""
    out = np.empty(len(squared_distances))
    map_chunks(len(out), lambda start, stop: _sums_chunk(squared_distances, neighbours, start, stop, out), ROWS)
    return out


@njit(nogil=True, cache=True)
def _sums_chunk(table, neighbours, start, stop, out):  # pragma: no cover
    others = np.empty(len(table) - 1)
    for r in range(start, stop):
        others[:r] = table[r, :r]
        others[r:] = table[r, r + 1 :]
        out[r] = np.partition(others, neighbours - 1)[:neighbours].sum()
