"""Rows in fewer numbers, so that inner products cost less: a random projection that takes one look at each number.

A row is cut into blocks as long as the sketch; each number gets a random sign, each block is turned by a random
number of places, and the blocks are added up. Two numbers of different blocks meet with probability 1 / size, two of
one block never do, so that for any x and y

    E <Sx, Sy> = <x, y>,    Var <Sx, Sy> <= (|x|^2 |y|^2 + <x, y>^2) / size.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from demoa.core.types import Floats

WORD = 64
"""Signs come from words of so many bits."""


def sketch(row: NDArray[np.floating], first: int, size: int, key: int) -> Floats:
    """Return the sketch, (size,) float64, of a piece of a row, (d,), that begins at column `first` of the whole."""
    out = np.zeros(size)
    _sketch(row, first, np.uint64(key), np.empty(size), out)
    return out


@njit(nogil=True, cache=True)
def _mixed(number):  # pragma: no cover
    """Return 64 random bits that belong to a number: SplitMix64."""
    word = number + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(nogil=True, cache=True)
def _sketch(row, first, key, signed, out):  # pragma: no cover
    size = len(out)
    turns, signs = _mixed(key), _mixed(key ^ np.uint64(1))
    column, stop = first, first + len(row)
    while column < stop:
        block, start = column // size, column % size
        used = min(size - start, stop - column)
        _sign(row[column - first : column - first + used], column, signs, signed)
        turn = np.int64(_mixed(turns + np.uint64(block)) % np.uint64(size))
        place = (start + turn) % size
        straight = min(used, size - place)
        _add(out[place : place + straight], signed[:straight])
        _add(out[: used - straight], signed[straight:used])
        column += used


@njit(nogil=True, cache=True)
def _sign(piece, column, signs, signed):  # pragma: no cover
    done = 0
    while done < len(piece):
        bit = (column + done) % WORD
        word = _mixed(signs + np.uint64((column + done) // WORD)) >> np.uint64(bit)
        count = min(WORD - bit, len(piece) - done)
        source, target = piece[done : done + count], signed[done : done + count]
        for c in range(count):
            odd = np.int64((word >> np.uint64(c)) & np.uint64(1))
            target[c] = source[c] * np.float64(1 - 2 * odd)
        done += count


@njit(nogil=True, cache=True)
def _add(target, source):  # pragma: no cover
    for c in range(len(target)):
        target[c] += source[c]
