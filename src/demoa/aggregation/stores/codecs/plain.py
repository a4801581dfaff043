"""Rows as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.codecs.codec import Plane, Planes


@dataclass(frozen=True)
class PlainCodec:
    """Every number as it is."""

    dtype: np.dtype[np.floating]
    aligned: ClassVar[int] = 1

    def planes(self, width: int) -> dict[str, Plane]:
        """Return what rows of this width are written to."""
        return {"rows": Plane(self.dtype, width)}

    def encode(self, planes: Planes, index: int, row: NDArray[np.floating]) -> None:
        """Write a row, (d,)."""
        planes["rows"][index] = row

    def decode(self, planes: Planes, chosen: NDArray[np.intp], start: int, out: NDArray[np.floating]) -> None:
        """Read columns of some rows, from `start` on, into out, (k, columns)."""
        rows, stop = planes["rows"], start + out.shape[1]
        for place, index in enumerate(chosen):
            out[place] = rows[index, start:stop]

    def left_over(self, planes: Planes, index: int, row: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the row: nothing is left out."""
        return row
