"""Coordinate-wise rules: each column of the (mixed) rows is sorted and averaged on its own.

A block of columns is mixed into a scratch that fits the first-level cache, sorted there by a network
and averaged: the rows are read once, and no mixed row is ever built.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from demoa.aggregation.kernels.chunks import map_chunks
from demoa.aggregation.kernels.lanes import LANES, fetch
from demoa.aggregation.kernels.network import full_network, rank_network
from demoa.aggregation.kernels.selection import near_median_block, rank_mean_block
from demoa.aggregation.kernels.straight import REGISTER_BYTES, sort_columns
from demoa.core.types import Matrix

SCRATCH_BYTES = 26_000
"""What the block of mixed rows may take: most of a 32 KiB first-level cache."""

STRAIGHT_NUMBERS, STRAIGHT_ROWS = 1 << 24, 128
"""From so many numbers on, in up to so many rows, it pays to compile code for the very number of rows."""

PAGED_NUMBERS = 1 << 18
"""How many numbers of many rows are read at a time."""

CACHE_LINE = 64
"""Bytes that come from memory together."""

AHEAD = 6
"""So many rows before they are read, the memory is told."""

MOST_ROWS = (1 << 16) - 1
"""Up to so many rows ranks are counted in sixteen bits."""


def rank_mean(rows: NDArray[np.floating], matrix: Matrix, low: int, high: int) -> NDArray[np.floating]:
    """Return, per column, the mean of the values of ranks low..high among matrix @ rows, (d,)."""
    return _run(rows, matrix, low, high, 0)


def near_median(rows: NDArray[np.floating], matrix: Matrix, keep: int) -> NDArray[np.floating]:
    """Return, per column, the mean of the `keep` values of matrix @ rows nearest to their median, (d,).

    Of two values at the same distance from the median the smaller goes first.
    """
    return _run(rows, matrix, (matrix.shape[0] - 1) // 2, matrix.shape[0] // 2, keep)


def _run(rows: NDArray[np.floating], matrix: Matrix, low: int, high: int, keep: int) -> NDArray[np.floating]:
    count, width = matrix.shape[0], rows.shape[1]
    out = np.empty(width, rows.dtype)
    ends, source = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    values = matrix.data.astype(rows.dtype)
    lanes = REGISTER_BYTES // rows.itemsize
    block = max(lanes, SCRATCH_BYTES // (rows.itemsize * count) // lanes * lanes)

    if count * width >= STRAIGHT_NUMBERS and count <= STRAIGHT_ROWS:
        constants = (low, high, keep > 0, count)
        straight = _straight_chunk_for(rows.dtype, constants)
        plain = bool((np.diff(ends) == 1).all())

        def task(start: int, stop: int) -> None:
            straight(rows, ends, source, values, plain, low, high, keep, block, start, stop, out, *constants)
    elif STRAIGHT_ROWS < count <= MOST_ROWS:

        def task(start: int, stop: int) -> None:
            _selecting_chunk(rows, ends, source, values, low, high, keep, start, stop, out)
    else:
        steps = full_network(count) if keep > 0 else rank_network(count, low, high)

        def task(start: int, stop: int) -> None:
            _chunk(rows, ends, source, values, steps, low, high, keep, block, start, stop, out)

    map_chunks(width, task)
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


@cache
def _straight_chunk_for(dtype: np.dtype[np.floating], constants: tuple[int, int, bool, int]) -> Any:
    """Return `_straight_chunk` compiled for these constants.

    What comes back takes its arguments as they are, without a look at their types: arrays must be contiguous.
    """
    number, whole = from_dtype(dtype), types.int64
    rows, values, index = types.Array(number, 2, "C"), types.Array(number, 1, "C"), types.Array(whole, 1, "C")
    numbers = [whole] * 6
    signature = (rows, index, index, values, types.boolean, *numbers, values, *map(types.literal, constants))
    _straight_chunk.compile(signature)
    return _straight_chunk.get_overload(signature)


# The constants of the compiler, which end in _, repeat low, high and the number of rows: helpers that took the
# constants would be compiled anew for each value, too.
@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _straight_chunk(
    rows, ends, source, values, plain, low, high, keep, block, start, stop, out, low_, high_, full_, rows_
):  # pragma: no cover
    count = len(ends) - 1
    mixed = np.zeros((count, block), rows.dtype)
    sums = np.empty(block)
    lanes = REGISTER_BYTES // rows.itemsize
    itself, unscaled = np.arange(count), np.ones(count, rows.dtype)
    for left in range(start, stop, block):
        right = min(left + block, stop)
        table, chosen, scale, column = rows, source, values, left
        if not plain or (right - left) % lanes > 0:
            # Rows that are mixed, and the last few columns, go through the scratch.
            _fill(rows, ends, source, values, left, right, mixed)
            table, chosen, scale, column = mixed, itself, unscaled, 0
        for c in range(0, right - left, lanes):
            sort_columns(table, chosen, scale, column + c, mixed, c, low_, high_, full_, rows_)  # type: ignore[call-arg]
        _average(mixed, low, high, keep, sums, out[left:right])


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _chunk(rows, ends, source, values, steps, low, high, keep, block, start, stop, out):  # pragma: no cover
    mixed = np.zeros((len(ends) - 1, block), rows.dtype)
    sums = np.empty(block)
    for left in range(start, stop, block):
        right = min(left + block, stop)
        _fill(rows, ends, source, values, left, right, mixed)
        for s in range(len(steps)):
            lower, upper = mixed[steps[s, 0]], mixed[steps[s, 1]]
            for c in range(block):
                a, b = lower[c], upper[c]
                lower[c] = _lesser(a, b)
                upper[c] = _greater(a, b)
        _average(mixed, low, high, keep, sums, out[left:right])


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _selecting_chunk(rows, ends, source, values, low, high, keep, start, stop, out):  # pragma: no cover
    # Each row is on pages of its own: so many columns of it are read at once that looking the page up is worth it.
    count = len(ends) - 1
    blocks = np.zeros((max(1, PAGED_NUMBERS // count // LANES), count, LANES), rows.dtype)
    width = len(blocks) * LANES
    wire = np.zeros((1, width), rows.dtype)
    for left in range(start, stop, width):
        right = min(left + width, stop)
        for r in range(count):
            ahead = ends[min(r + AHEAD, count - 1)]
            if ahead < len(source):
                for c in range(left, right, CACHE_LINE // rows.itemsize):
                    fetch(rows, source[ahead], c)
            if ends[r + 1] - ends[r] == 1 and right - left == width:
                _scatter(rows[source[ends[r]], left:right], values[ends[r]], blocks, r)
            else:
                _fill(rows, ends[r : r + 2], source, values, left, right, wire)
                _scatter(wire[0], rows.dtype.type(1.0), blocks, r)
        for b in range(len(blocks)):
            first = left + b * LANES
            used = min(LANES, right - first)
            if used > 0 and keep == 0:
                rank_mean_block(blocks[b], low, high, used, out[first : first + used])
            elif used > 0:
                near_median_block(blocks[b], keep, used, out[first : first + used])


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _scatter(wire, value, blocks, row):  # pragma: no cover
    """Set a row of all blocks to value * wire."""
    for b in range(len(blocks)):
        piece, target = wire[b * LANES : (b + 1) * LANES], blocks[b, row]
        for c in range(LANES):
            target[c] = value * piece[c]


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _fill(rows, ends, source, values, left, right, mixed):  # pragma: no cover
    """Set mixed to the combinations of rows, columns left..right."""
    used = right - left
    for r in range(len(mixed)):
        first, last = ends[r], ends[r + 1]
        wire = mixed[r]
        if last - first == 1:  # the common case, and too short to be worth a call
            row, value = rows[source[first], left:right], values[first]
            for c in range(used):
                wire[c] = value * row[c]
        else:
            _mix(rows, source[first:last], values[first:last], left, used, wire)


@njit(nogil=True, fastmath=NO_NAN, cache=True)
def _average(mixed, low, high, keep, sums, result):  # pragma: no cover
    """Set result to the mean, per sorted column, of ranks low..high, or of the `keep` values near the median."""
    sums[:] = 0.0
    if keep == 0:
        for r in range(low, high + 1):
            wire = mixed[r]
            for c in range(len(sums)):
                sums[c] += wire[c]
        share = 1.0 / (high - low + 1)
    else:
        _sum_near(mixed, low, high, keep, sums)
        share = 1.0 / keep
    for c in range(len(result)):
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
