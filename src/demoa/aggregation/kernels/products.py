"""Inner products and linear combinations of rows, summed in float64 whatever the rows' dtype.

A product of two float32 numbers is exact in float64, so the only error is that of the additions.
A sum of d terms runs through at most BLOCK + d / BLOCK of them in a row, hence

    |computed - exact| <= relative_error(d) * |x| |y|        (d = 1.2 M: 5e-13)

and that is the worst case; what is seen is 1e-15. So |x|^2 + |y|^2 - 2 <x, y> loses its digits only for
rows that agree to about six places, where rounding the rows to float32 has already done as much harm.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from demoa.aggregation.kernels.chunks import LONG_CHUNK, map_chunks
from demoa.core.types import Floats

BLOCK = 4096
"""Columns that stay in the cache while all tiles of rows pass over them."""

TALL, WIDE = 4, 3
"""A tile of TALL x WIDE inner products: twelve sums fill the vector registers without spilling."""

CACHED = 64
"""Blocks of so many rows stay in the cache."""

# Inside the loops below only slices are indexed, never an array plus an offset: numba lets an index count
# from the end, and the compiler vectorizes a loop only where it can see that none does.

# Sums may be reordered and fused, but NaN and infinity keep their meaning.
SUMS = {"reassoc", "contract", "nsz"}


def relative_error(width: int) -> float:
    """Return the bound on the error of an inner product of (width,) rows, relative to |x| |y|."""
    longest_chain = min(width, BLOCK) + width // BLOCK + 2
    return longest_chain * 2.0**-53 * 1.01


def gram(rows: NDArray[np.floating], fresh: NDArray[np.intp]) -> Floats:
    """Return the inner products of the fresh rows with all rows, (k, n) float64.

    Equal rows give equal numbers, to the last bit, wherever they stand: each entry is summed in the
    same order.
    """
    count, width = rows.shape
    is_old = np.ones(count, bool)
    is_old[fresh] = False
    order = np.concatenate([fresh, np.flatnonzero(is_old)])
    # A tile may stand either way: the one that fits the number of fresh rows computes less in vain. With few fresh
    # ones among many, these must pass under the others, so that all are fetched once.
    standing = _up(len(fresh), TALL) * _up(count, WIDE) <= _up(len(fresh), WIDE) * _up(count, TALL) and (
        count <= CACHED or 2 * len(fresh) > count
    )
    tall, wide = (
        (_padded(fresh, TALL), _padded(order, WIDE))
        if standing
        else (
            _padded(order, TALL),
            _padded(fresh, WIDE),
        )
    )
    part = sum(map_chunks(width, lambda start, stop: _gram_chunk(rows, tall, wide, standing, start, stop)))
    products = np.empty((len(fresh), count))
    products[:, order] = (part if standing else part.T)[: len(fresh), :count]
    square = products[:, fresh]
    products[:, fresh] = np.triu(square) + np.triu(square, 1).T
    return products


def combine(rows: NDArray[np.floating], weights: Floats) -> NDArray[np.floating]:
    """Return weights @ rows, (d,), rounded once to the rows' dtype; rows of weight 0 are not read."""
    out = np.empty(rows.shape[1], rows.dtype)
    chosen = np.flatnonzero(weights)
    picked = np.ascontiguousarray(weights[chosen], np.float64)
    map_chunks(len(out), lambda start, stop: _combine_chunk(rows, chosen, picked, start, stop, out))
    return out


def accumulate(rows: NDArray[np.floating], total: Floats | None, factor: float, weights: Floats) -> Floats:
    """Set total to factor * total + weights @ rows, (d,) float64, and return it; rows of weight 0 are not read."""
    out, kept = (np.empty(rows.shape[1]), 0.0) if total is None else (total, factor)
    chosen = np.flatnonzero(weights)
    picked = np.ascontiguousarray(weights[chosen], np.float64)
    map_chunks(len(out), lambda start, stop: _accumulate_chunk(rows, chosen, picked, start, stop, kept, out))
    return out


def squared_distance(rows: NDArray[np.floating], weights: Floats, vector: NDArray[np.floating]) -> float:
    """Return |weights @ rows - vector|^2, without building the combination."""
    chosen = np.flatnonzero(weights)
    picked = np.ascontiguousarray(weights[chosen], np.float64)
    return float(sum(map_chunks(len(vector), lambda a, b: _distance_chunk(rows, chosen, picked, a, b, vector))))


def blend(row: NDArray[np.floating], keep: float, gain: float, vector: NDArray[np.floating]) -> None:
    """Set row to keep * row + gain * vector, in place.

    In float64 this is bit for bit what NumPy gives for that expression; in float32 it is computed in
    float64 and rounded once.
    """
    map_chunks(len(row), lambda start, stop: _blend_chunk(row, keep, gain, vector, start, stop), LONG_CHUNK)


def blended(row: NDArray[np.floating], keep: float, gain: float, vector: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return keep * row + gain * vector, (d,), rounded like `blend`; row stays as it is."""
    out = np.empty_like(row)
    map_chunks(len(row), lambda start, stop: _blended_chunk(out, row, keep, gain, vector, start, stop), LONG_CHUNK)
    return out


def moved(start: NDArray[np.floating], gain: float, vector: NDArray[np.floating]) -> tuple[NDArray[np.floating], float]:
    """Return start + gain * vector, (d,), rounded like `blend`, and its squared norm, found in the same pass."""
    out = np.empty_like(start)
    squares = map_chunks(len(out), lambda a, b: _moved_chunk(out, start, gain, vector, a, b), LONG_CHUNK)
    return out, float(sum(squares))


def squared_norm(vector: NDArray[np.floating]) -> float:
    """Return |vector|^2 as float64: not finite if and only if an entry is not (or it overflows)."""
    return float(sum(map_chunks(len(vector), lambda start, stop: _square_chunk(vector, start, stop), LONG_CHUNK)))


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _padded(index: NDArray[np.intp], multiple: int) -> NDArray[np.intp]:
    return np.concatenate([index, np.repeat(index[-1:], _up(len(index), multiple) - len(index))])


@njit(nogil=True, fastmath=SUMS, cache=True)
def _gram_chunk(rows, tall, wide, symmetric, start, stop):  # pragma: no cover
    out = np.zeros((len(tall), len(wide)))
    for left in range(start, stop, BLOCK):
        right = min(left + BLOCK, stop)
        for r in range(0, len(tall), TALL):
            a0 = rows[tall[r], left:right]
            a1 = rows[tall[r + 1], left:right]
            a2 = rows[tall[r + 2], left:right]
            a3 = rows[tall[r + 3], left:right]
            # If symmetric, wide begins with the rows of tall: start at the diagonal.
            for q in range(r - r % WIDE if symmetric else 0, len(wide), WIDE):
                b0 = rows[wide[q], left:right]
                b1 = rows[wide[q + 1], left:right]
                b2 = rows[wide[q + 2], left:right]
                s00 = s01 = s02 = s10 = s11 = s12 = 0.0
                s20 = s21 = s22 = s30 = s31 = s32 = 0.0
                for c in range(right - left):
                    x0 = np.float64(b0[c])
                    x1 = np.float64(b1[c])
                    x2 = np.float64(b2[c])
                    y = np.float64(a0[c])
                    s00 += y * x0
                    s01 += y * x1
                    s02 += y * x2
                    y = np.float64(a1[c])
                    s10 += y * x0
                    s11 += y * x1
                    s12 += y * x2
                    y = np.float64(a2[c])
                    s20 += y * x0
                    s21 += y * x1
                    s22 += y * x2
                    y = np.float64(a3[c])
                    s30 += y * x0
                    s31 += y * x1
                    s32 += y * x2
                out[r, q] += s00
                out[r, q + 1] += s01
                out[r, q + 2] += s02
                out[r + 1, q] += s10
                out[r + 1, q + 1] += s11
                out[r + 1, q + 2] += s12
                out[r + 2, q] += s20
                out[r + 2, q + 1] += s21
                out[r + 2, q + 2] += s22
                out[r + 3, q] += s30
                out[r + 3, q + 1] += s31
                out[r + 3, q + 2] += s32
    return out


@njit(nogil=True, fastmath=SUMS, cache=True)
def _combine_chunk(rows, chosen, weights, start, stop, out):  # pragma: no cover
    sums = np.empty(BLOCK)
    for left in range(start, stop, BLOCK):
        right = min(left + BLOCK, stop)
        sums[:] = 0.0
        _add_block(rows, chosen, weights, left, right, sums)
        result = out[left:right]
        for c in range(right - left):
            result[c] = sums[c]


@njit(nogil=True, fastmath=SUMS, cache=True)
def _accumulate_chunk(rows, chosen, weights, start, stop, factor, total):  # pragma: no cover
    sums = np.empty(BLOCK)
    for left in range(start, stop, BLOCK):
        right = min(left + BLOCK, stop)
        result = total[left:right]
        # Begun with what is there, so that rows may come a multiple of four at a time, to the same bits.
        if factor == 0.0:
            sums[:] = 0.0
        else:
            for c in range(right - left):
                sums[c] = factor * result[c]
        _add_block(rows, chosen, weights, left, right, sums)
        for c in range(right - left):
            result[c] = sums[c]


@njit(nogil=True, fastmath=SUMS, cache=True)
def _distance_chunk(rows, chosen, weights, start, stop, vector):  # pragma: no cover
    sums = np.empty(BLOCK)
    total = 0.0
    for left in range(start, stop, BLOCK):
        right = min(left + BLOCK, stop)
        sums[:] = 0.0
        _add_block(rows, chosen, weights, left, right, sums)
        other = vector[left:right]
        for c in range(right - left):
            away = sums[c] - other[c]
            total += away * away
    return total


@njit(nogil=True, fastmath=SUMS, cache=True)
def _add_block(rows, chosen, weights, left, right, sums):  # pragma: no cover
    """Add to the first entries of sums the combination of rows, columns left..right."""
    whole = len(chosen) - len(chosen) % 4
    for j in range(0, whole, 4):
        x0 = rows[chosen[j], left:right]
        x1 = rows[chosen[j + 1], left:right]
        x2 = rows[chosen[j + 2], left:right]
        x3 = rows[chosen[j + 3], left:right]
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for c in range(right - left):
            sums[c] += w0 * x0[c] + w1 * x1[c] + w2 * x2[c] + w3 * x3[c]
    for j in range(whole, len(chosen)):
        x0 = rows[chosen[j], left:right]
        for c in range(right - left):
            sums[c] += weights[j] * x0[c]


@njit(nogil=True, cache=True)
def _blend_chunk(row, keep, gain, vector, start, stop):  # pragma: no cover
    mine, other = row[start:stop], vector[start:stop]
    for c in range(len(mine)):
        mine[c] = keep * mine[c] + gain * other[c]


@njit(nogil=True, cache=True)
def _blended_chunk(out, row, keep, gain, vector, start, stop):  # pragma: no cover
    result, mine, other = out[start:stop], row[start:stop], vector[start:stop]
    for c in range(len(result)):
        result[c] = keep * mine[c] + gain * other[c]


@njit(nogil=True, fastmath=SUMS - {"contract"}, cache=True)
def _moved_chunk(out, origin, gain, vector, start, stop):  # pragma: no cover
    result, mine, other = out[start:stop], origin[start:stop], vector[start:stop]
    total = 0.0
    for c in range(len(result)):
        result[c] = mine[c] + gain * other[c]
        x = np.float64(result[c])
        total += x * x
    return total


@njit(nogil=True, fastmath=SUMS, cache=True)
def _square_chunk(vector, start, stop):  # pragma: no cover
    piece = vector[start:stop]
    total = 0.0
    for c in range(len(piece)):
        x = np.float64(piece[c])
        total += x * x
    return total
