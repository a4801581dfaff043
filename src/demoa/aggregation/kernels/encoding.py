"""The loops that write rows in fewer bytes, and read them back."""

from __future__ import annotations

import numpy as np
from numba import njit

TO_WHOLE = 1.5 * 2.0**52
"""A number so large that adding it rounds to whole numbers, and of two that are as near, to the even one."""


@njit(nogil=True, cache=True)
def encode_bfloat16(words, halves):  # pragma: no cover
    """Set halves to the upper halves of float32 numbers, given as words."""
    for c in range(len(words)):
        word = words[c]
        # To the nearest; of two that are as near, to the even one.
        halves[c] = (word + np.uint32(0x7FFF) + ((word >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def encode_int8(row, block, steps, scales):  # pragma: no cover
    """Set steps and scales to a row of finite numbers, one scale per block."""
    for b in range(len(scales)):
        piece, whole = row[b * block : (b + 1) * block], steps[b * block : (b + 1) * block]
        largest = np.float32(0.0)
        for c in range(len(piece)):
            largest = max(largest, abs(np.float32(piece[c])))
        scale = np.float32(largest / np.float32(127.0))
        scales[b] = scale
        # Below the least float32 there is nothing to scale by.
        factor = 1.0 / np.float64(scale) if scale > 0.0 else 0.0
        for c in range(len(piece)):
            exact = min(127.0, max(-127.0, piece[c] * factor))
            whole[c] = np.int8(np.int32((exact + TO_WHOLE) - TO_WHOLE))


@njit(nogil=True, cache=True)
def decode_int8(steps, scales, block, start, out):  # pragma: no cover
    """Set out to the numbers of a row from column `start`, the beginning of a block, on."""
    first = start // block
    for b in range(first, first + (len(out) + block - 1) // block):
        left = b * block - start
        piece = out[left : left + block]
        whole, scale = steps[b * block : b * block + len(piece)], scales[b]
        for c in range(len(piece)):
            piece[c] = np.float32(whole[c]) * scale


@njit(nogil=True, cache=True)
def decode_places(places, numbers, start, out):  # pragma: no cover
    """Set out to the columns of a row from `start` on, of which only some are not zero."""
    out[:] = 0.0
    first = np.searchsorted(places, start)
    for j in range(first, len(places)):
        column = np.int64(places[j]) - start
        if column >= len(out):
            break
        out[column] = numbers[j]
