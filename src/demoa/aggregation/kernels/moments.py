"""Mean and spread of rows, per coordinate, and inner products of all rows with one vector."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from demoa.aggregation.kernels.chunks import map_chunks
from demoa.aggregation.kernels.products import BLOCK, SUMS
from demoa.core.types import Floats


def mean_and_deviation(
    rows: NDArray[np.floating], chosen: NDArray[np.intp], scale: Floats
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the mean and the unbiased standard deviation of scale_j * rows[chosen_j], (d,) each."""
    mean, deviation = np.empty(rows.shape[1], rows.dtype), np.empty(rows.shape[1], rows.dtype)

    def task(start: int, stop: int) -> None:
        _moments_chunk(rows, chosen, scale, start, stop, mean, deviation)

    map_chunks(rows.shape[1], task)
    return mean, deviation


def inner(rows: NDArray[np.floating], vector: NDArray[np.floating], chosen: NDArray[np.intp]) -> Floats:
    """Return the inner product of each chosen row with a vector, (k,) float64."""
    parts = map_chunks(len(vector), lambda start, stop: _inner_chunk(rows, chosen, vector, start, stop))
    return np.asarray(np.sum(parts, axis=0))


@njit(nogil=True, fastmath=SUMS, cache=True)
def _moments_chunk(rows, chosen, scale, start, stop, mean, deviation):  # pragma: no cover
    sums, squares = np.empty(BLOCK), np.empty(BLOCK)
    count = len(chosen)
    for left in range(start, stop, BLOCK):
        used = min(BLOCK, stop - left)
        sums[:] = 0.0
        squares[:] = 0.0
        for j in range(count):
            row, factor = rows[chosen[j], left : left + used], scale[j]
            for c in range(used):
                sums[c] += factor * row[c]
        for c in range(used):
            sums[c] /= count
        # A second look at the block, which is still in the cache: no difference of large squares.
        for j in range(count):
            row, factor = rows[chosen[j], left : left + used], scale[j]
            for c in range(used):
                away = factor * row[c] - sums[c]
                squares[c] += away * away
        mean_out, deviation_out = mean[left : left + used], deviation[left : left + used]
        for c in range(used):
            mean_out[c] = sums[c]
            deviation_out[c] = np.sqrt(squares[c] / max(1, count - 1))


@njit(nogil=True, fastmath=SUMS, cache=True)
def _inner_chunk(rows, chosen, vector, start, stop):  # pragma: no cover
    out = np.zeros(len(chosen))
    for left in range(start, stop, BLOCK):
        right = min(left + BLOCK, stop)
        other = vector[left:right]
        for j in range(len(chosen)):
            row = rows[chosen[j], left:right]
            total = 0.0
            for c in range(right - left):
                total += np.float64(row[c]) * np.float64(other[c])
            out[j] += total
    return out
