"""Sums of the smallest distances of each row of a table."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from demoa.aggregation.kernels.chunks import map_chunks
from demoa.core.types import Floats

ROWS = 64
"""Rows per task."""

# Below, `products` are inner products of n rows, (n, n), `squares` the squared norms of the scaled rows, (n,); of the
# distances of a row, `others` holds those to all but itself, (n - 1,).


def nearest_sums(squared_distances: Floats, neighbours: int) -> Floats:
    """Return, per row of a square table, the sum of its `neighbours` smallest entries off the diagonal, (n,)."""
    out = np.empty(len(squared_distances))
    map_chunks(len(out), lambda start, stop: _sums_chunk(squared_distances, neighbours, start, stop, out), ROWS)
    return out


def scaled_sums(
    products: Floats,
    squares: Floats,
    scale: Floats,
    neighbours: int,
    chosen: NDArray[np.intp],
    sums: Floats,
    thresholds: Floats,
) -> None:
    """Set sums and thresholds of the chosen rows: the sum of the smallest distances of scale_j * row j, the largest."""

    def task(start: int, stop: int) -> None:
        _scaled_chunk(products, squares, scale, neighbours, chosen[start:stop], sums, thresholds)

    map_chunks(len(chosen), task, ROWS)


@njit(nogil=True, cache=True)
def _distance(squares, product):  # pragma: no cover
    """Return the squared distance of two rows; as in a table, what cancels down to its last bits is noise."""
    distance = squares - 2.0 * product
    return distance if distance > 4.0 * np.finfo(np.float64).eps * squares else 0.0


@njit(nogil=True, cache=True)
def share_of(products, squares, scale, row, sign, thresholds, sums):  # pragma: no cover
    """Add to sums_j sign * max(0, thresholds_j - distance of rows j and `row`), for all j but that row."""
    mine, factor, norm = products[row], scale[row], squares[row]
    for j in range(len(sums)):
        near = thresholds[j] - _distance(squares[j] + norm, factor * scale[j] * mine[j])
        if near > 0.0 and j != row:
            sums[j] += sign * near


@njit(nogil=True, cache=True)
def least_sum(products, squares, scale, neighbours, bounds, sums, thresholds):  # pragma: no cover
    """Return the row with the least sum, of several the first, without computing sums that their bounds rule out.

    Sums that are computed are set, with their thresholds.
    """
    others = np.empty(len(sums) - 1)
    found = np.argmin(bounds)
    best = np.inf
    for row in np.append(found, np.arange(len(sums))):  # the likeliest first: it rules most of the others out
        if bounds[row] <= best:
            _distances(products, squares, scale, row, others)
            _smallest(others, neighbours, row, sums, thresholds)
            if sums[row] < best or (sums[row] == best and row < found):
                best, found = sums[row], row
    return found


@njit(nogil=True, cache=True)
def _scaled_chunk(products, squares, scale, neighbours, chosen, sums, thresholds):  # pragma: no cover
    others = np.empty(len(sums) - 1)
    for row in chosen:
        _distances(products, squares, scale, row, others)
        _smallest(others, neighbours, row, sums, thresholds)


@njit(nogil=True, cache=True)
def _distances(products, squares, scale, row, others):  # pragma: no cover
    mine, factor, norm = products[row], scale[row], squares[row]
    for j in range(len(squares)):
        if j != row:
            others[j if j < row else j - 1] = _distance(squares[j] + norm, factor * scale[j] * mine[j])


@njit(nogil=True, cache=True)
def _smallest(others, neighbours, row, sums, thresholds):  # pragma: no cover
    smallest = np.partition(others, neighbours - 1)[:neighbours]
    sums[row], thresholds[row] = _sum(smallest), smallest.max()


@njit(nogil=True, cache=True)
def _sum(numbers):  # pragma: no cover
    """Return the sum, with what rounding loses added at the end: rows with the same distances get the same sum."""
    total = lost = 0.0
    for number in numbers:
        after = total + number
        kept = after - total
        lost += (total - (after - kept)) + (number - kept)
        total = after
    return total + lost


@njit(nogil=True, cache=True)
def _sums_chunk(table, neighbours, start, stop, out):  # pragma: no cover
    others = np.empty(len(table) - 1)
    for r in range(start, stop):
        others[:r] = table[r, :r]
        others[r:] = table[r, r + 1 :]
        out[r] = _sum(np.partition(others, neighbours - 1)[:neighbours])
