"""Coordinate-wise rules: each column of the (mixed) rows is sorted and averaged on its own.

A block of columns is mixed into a scratch that fits the first-level cache, sorted there by a network
and averaged: the rows are read once, and no mixed row is ever built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.extending import intrinsic
from numpy.typing import NDArray

from demoa.aggregation.kernels.chunks import map_chunks
from demoa.aggregation.kernels.network import full_network, rank_network
from demoa.core.types import Floats

SCRATCH_BYTES = 26_000
"""What the block of mixed rows may take: most of a 32 KiB first-level cache."""


def rank_mean(rows: NDArray[np.floating], matrix: Floats, low: int, high: int) -> NDArray[np.floating]:
    """Return, per column, the mean of the values of ranks low..high among matrix @ rows, (d,)."""
    steps = rank_network(len(matrix), low, high)
    return _run(rows, matrix, steps, low, high, 0)


def near_median(rows: NDArray[np.floating], matrix: Floats, keep: int) -> NDArray[np.floating]:
    """Return, per column, the mean of the `keep` values of matrix @ rows nearest to their median, (d,).

    Of two values at the same distance from the median the smaller goes first.
    """
    count = len(matrix)
    return _run(rows, matrix, full_network(count), (count - 1) // 2, count // 2, keep)


def _run(
    rows: NDArray[np.floating], matrix: Floats, steps: NDArray[np.intp], low: int, high: int, keep: int
) -> NDArray[np.floating]:
    out = np.empty(rows.shape[1], rows.dtype)
    owner, source = np.nonzero(matrix)
    ends = np.searchsorted(owner, np.arange(len(matrix) + 1))
    values = matrix[owner, source].astype(rows.dtype)
    block = max(16, SCRATCH_BYTES // (rows.itemsize * len(matrix)) // 16 * 16)

    def task(start: int, stop: int) -> None:
        _chunk(rows, ends, source, values, steps, low, high, keep, block, start, stop, out)

    map_chunks(len(out), task)
    return out


def _extreme(name: str) -> Any:
    """Make the function (a, b) -> min or max that compiles to one instruction on whole registers.

    Python's min and max compile to a branch, which the compiler turns into masked stores, four times
    slower here. NaN never gets this far: the gate refuses it.
    """

    @intrinsic
    def function(typing_context, a, b):  # pragma: no cover
        def emit(context, builder, signature, args):
            kind = args[0].type
            callee = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(callee, args)

        return a(a, b), emit

    return function


# Without the promise that there is no NaN, one comparison compiles to four instructions in place of one.
NO_NAN = {"contract", "nsz", "nnan"}

_lesser = _extreme("llvm.minnum")
_greater = _extreme("llvm.maxnum")


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _chunk(rows, ends, source, values, steps, low, high, keep, block, start, stop, out):  # pragma: no cover
    count = len(ends) - 1
    mixed = np.zeros((count, block), rows.dtype)
    sums = np.empty(block)
    for left in range(start, stop, block):
        used = min(block, stop - left)
        for r in range(count):
            first, last = ends[r], ends[r + 1]
            wire = mixed[r]
            if last - first == 1:  # the common case, and too short to be worth a call
                row, value = rows[source[first], left : left + used], values[first]
                for c in range(used):
                    wire[c] = value * row[c]
            else:
                _mix(rows, source[first:last], values[first:last], left, used, wire)
        for s in range(len(steps)):
            lower, upper = mixed[steps[s, 0]], mixed[steps[s, 1]]
            for c in range(block):
                a, b = lower[c], upper[c]
                lower[c] = _lesser(a, b)
                upper[c] = _greater(a, b)
        sums[:] = 0.0
        if keep == 0:
            for r in range(low, high + 1):
                wire = mixed[r]
                for c in range(block):
                    sums[c] += wire[c]
            share = 1.0 / (high - low + 1)
        else:
            _sum_near(mixed, low, high, keep, sums)
            share = 1.0 / keep
        result = out[left : left + used]
        for c in range(used):
            result[c] = sums[c] * share


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _mix(rows, source, values, left, used, wire):  # pragma: no cover
    """Set the first `used` entries of wire to the combination of rows, from column `left` on."""
    lone = len(source) % 4
    wire[:used] = 0
    for e in range(lone):
        x0, v0 = rows[source[e], left : left + used], values[e]
        for c in range(used):
            wire[c] += v0 * x0[c]
    for e in range(lone, len(source), 4):
        x0, v0 = rows[source[e], left : left + used], values[e]
        x1, v1 = rows[source[e + 1], left : left + used], values[e + 1]
        x2, v2 = rows[source[e + 2], left : left + used], values[e + 2]
        x3, v3 = rows[source[e + 3], left : left + used], values[e + 3]
        for c in range(used):
            wire[c] += (v0 * x0[c] + v1 * x1[c]) + (v2 * x2[c] + v3 * x3[c])


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _sum_near(mixed, low, high, keep, sums):  # pragma: no cover
    """Add to sums, per sorted column, the window of `keep` values that lies closest to the median.

    Value r is dropped from below if value r + keep lies nearer, and from above if value r - keep does
    not lie farther. No value outside the window enters a sum, however large it is.
    """
    count, block = mixed.shape
    slack = count - keep
    lower, upper = mixed[low], mixed[high]
    for r in range(count):
        wire = mixed[r]
        above = mixed[min(r + keep, count - 1)]
        below = mixed[max(r - keep, 0)]
        from_below, from_above = r < slack, r >= keep
        for c in range(block):
            median = 0.5 * lower[c] + 0.5 * upper[c]
            out_below = from_below and median - wire[c] > above[c] - median
            out_above = from_above and not (median - below[c] > wire[c] - median)
            sums[c] += 0.0 if out_below or out_above else wire[c]
