"""Rows in eight bits per number, with a scale for each block of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.kernels.encoding import decode_int8, encode_int8
from demoa.aggregation.stores.codecs.codec import Plane, Planes


@dataclass(frozen=True)
class Int8Codec:
    """Every number as a whole number from -127 to 127, times the scale of its block of numbers.

    What is read is off by at most 1/254 of the largest number of the block.
    """

    block: int = 64

    @property
    def aligned(self) -> int:
        """Columns are read from the beginning of a block on."""
        return self.block

    def planes(self, width: int) -> dict[str, Plane]:
        """Return what rows of this width are written to."""
        return {
            "steps": Plane(np.dtype(np.int8), width),
            "scales": Plane(np.dtype(np.float32), -(-width // self.block)),
        }

    def encode(self, planes: Planes, index: int, row: NDArray[np.floating]) -> None:
        """Write a row, (d,)."""
        encode_int8(row, self.block, planes["steps"][index], planes["scales"][index])

    def decode(self, planes: Planes, chosen: NDArray[np.intp], start: int, out: NDArray[np.floating]) -> None:
        """Read columns of some rows, from `start` on, into out, (k, columns)."""
        steps, scales = planes["steps"], planes["scales"]
        for place, index in enumerate(chosen):
            decode_int8(steps[index], scales[index], self.block, start, out[place])

    def left_over(self, planes: Planes, index: int, row: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the row: what was rounded off is lost."""
        return row
