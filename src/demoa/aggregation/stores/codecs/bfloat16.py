"""Rows in bfloat16: the upper half of a float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.kernels.encoding import encode_bfloat16
from demoa.aggregation.stores.codecs.codec import Plane, Planes


@dataclass(frozen=True)
class Bfloat16Codec:
    """Every number to eight binary digits, rounded to the nearest: off by at most 1 in 512."""

    aligned: ClassVar[int] = 1

    def planes(self, width: int) -> dict[str, Plane]:
        """Return what rows of this width are written to."""
        return {"halves": Plane(np.dtype(np.uint16), width)}

    def encode(self, planes: Planes, index: int, row: NDArray[np.floating]) -> None:
        """Write a row, (d,)."""
        encode_bfloat16(np.ascontiguousarray(row, np.float32).view(np.uint32), planes["halves"][index])

    def decode(self, planes: Planes, chosen: NDArray[np.intp], start: int, out: NDArray[np.floating]) -> None:
        """Read columns of some rows, from `start` on, into out, (k, columns)."""
        halves, stop = planes["halves"], start + out.shape[1]
        for place, index in enumerate(chosen):
            out[place] = (halves[index, start:stop].astype(np.uint32) << np.uint32(16)).view(np.float32)

    def left_over(self, planes: Planes, index: int, row: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the row: what was rounded off is lost."""
        return row
