"""Coordinate-wise rules over many rows, where no sorting network is short enough: ranks are found by bisection.

Each number has a key of sixteen bits whose order is that of the numbers. Sixteen passes over the keys of a block of
columns, bit by bit, find the key of a rank; the few numbers that share it are sorted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from demoa.aggregation.kernels.lanes import (
    LANES,
    bisect_both,
    bisect_keys,
    distances_from,
    first_bit,
    least_above,
    mark_keys,
    sum_between,
    sum_nearer,
    upper_keys,
)


@njit(nogil=True, cache=True)
def rank_mean_block(mixed, low, high, used, result):  # pragma: no cover
    """Set result to the mean, per column of (m, LANES), of the values of ranks low..high."""
    keys = np.empty((len(mixed), LANES), np.uint16)
    upper_keys(mixed, keys)
    first, below = np.empty(LANES, np.uint16), np.empty(LANES, np.uint16)
    last, under = np.empty(LANES, np.uint16), np.empty(LANES, np.uint16)
    if high > low + 1:
        bisect_both(keys, low, high, first, below, last, under)
    else:
        bisect_keys(keys, low, first, below)
    sums = np.zeros(LANES)
    found, sizes = np.empty((LANES, len(mixed)), mixed.dtype), np.zeros(LANES, np.int64)
    _gather(mixed, keys, first, found, sizes)
    for c in range(used):
        inside = np.sort(found[c, : sizes[c]])
        # Of those that share the first key, ranks low and up; where high shares it as well, up to high.
        start = low - np.int64(below[c])
        for rank in range(start, min(len(inside), start + high - low + 1)):
            sums[c] += inside[rank]
    if high == low + 1:
        following = np.empty(LANES, mixed.dtype)
        least_above(mixed, keys, first, following)
        for c in range(used):
            if high - np.int64(below[c]) >= sizes[c]:
                sums[c] += following[c]
    elif high > low:
        _add_up_to(mixed, keys, first, last, high - under.astype(np.int64), used, found, sums)
    for c in range(used):
        result[c] = sums[c] / (high - low + 1)


@njit(nogil=True, cache=True)
def _add_up_to(mixed, keys, first, last, ranks, used, found, sums):  # pragma: no cover
    """Add to sums, per column, the numbers whose keys are above the first, up to a rank among those of the last."""
    between, sizes = np.empty(LANES), np.zeros(LANES, np.int64)
    sum_between(mixed, keys, first, last, between)
    _gather(mixed, keys, last, found, sizes)
    for c in range(used):
        if last[c] != first[c]:
            sums[c] += between[c]
            inside = np.sort(found[c, : sizes[c]])
            for rank in range(ranks[c] + 1):
                sums[c] += inside[rank]


@njit(nogil=True, cache=True)
def near_median_block(mixed, keep, used, result):  # pragma: no cover
    """Set result to the mean, per column of (m, LANES), of the `keep` values nearest to the median.

    Of two values at the same distance from the median the smaller goes first.
    """
    count = len(mixed)
    median, edge = np.zeros(LANES, mixed.dtype), np.zeros(LANES, mixed.dtype)
    rank_mean_block(mixed, (count - 1) // 2, count // 2, used, median)
    away = np.empty_like(mixed)
    distances_from(mixed, median, away)
    rank_mean_block(away, keep - 1, keep - 1, used, edge)
    sums, inside = np.empty(LANES), np.empty(LANES, np.uint16)
    sum_nearer(mixed, away, edge, sums, inside)
    from_below = np.zeros(LANES, np.int64)
    for r in range(count):
        far, row = away[r], mixed[r]
        for c in range(LANES):
            if far[c] == edge[c] and row[c] < median[c]:
                from_below[c] += 1
    for c in range(used):
        left = keep - np.int64(inside[c])
        smaller = min(left, from_below[c])
        at_edge = smaller * np.float64(median[c] - edge[c]) + (left - smaller) * np.float64(median[c] + edge[c])
        result[c] = (sums[c] + at_edge) / keep


@njit(nogil=True, cache=True)
def _gather(mixed, keys, wanted, found, sizes):  # pragma: no cover
    """Collect, per column, the numbers whose key is the wanted one: found, (LANES, m), and how many there are."""
    marks = np.empty(len(mixed), np.uint32)
    mark_keys(keys, wanted, marks)
    for r in range(len(mixed)):
        mark = marks[r]
        while mark != 0:
            c = first_bit(mark)
            found[c, sizes[c]] = mixed[r, c]
            sizes[c] += 1
            mark &= mark - np.uint32(1)
