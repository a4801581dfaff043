"""The largest numbers of a row, and what was left out kept for the next time that the row is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.kernels.encoding import decode_places
from demoa.aggregation.stores.codecs.codec import Plane, Planes
from demoa.aggregation.stores.codecs.int8 import Int8Codec


@dataclass(frozen=True)
class TopKCodec:
    """The share of a row's numbers that is largest, as they are; rules see zeros in place of the others.

    With `feedback` the others are kept in eight bits each, out of the rules' sight, and are part of the row again when
    it is next written: what is small in every round is not lost for ever.
    """

    share: float = 0.05
    feedback: bool = True
    aligned: ClassVar[int] = 1
    _residual: ClassVar[Int8Codec] = Int8Codec()

    def planes(self, width: int) -> dict[str, Plane]:
        """Return what rows of this width are written to."""
        kept = max(1, round(self.share * width))
        planes = {
            "places": Plane(np.dtype(np.uint32), kept),
            "numbers": Plane(np.dtype(np.float32), kept),
        }
        return planes | (self._residual.planes(width) if self.feedback else {})

    def encode(self, planes: Planes, index: int, row: NDArray[np.floating]) -> None:
        """Write a row, (d,)."""
        kept = planes["places"].shape[1]
        places = np.sort(np.argpartition(np.abs(row), len(row) - kept)[len(row) - kept :])
        planes["places"][index] = places
        planes["numbers"][index] = row[places]
        if self.feedback:
            rest = row.copy()
            rest[places] = 0.0
            self._residual.encode(planes, index, rest)

    def decode(self, planes: Planes, chosen: NDArray[np.intp], start: int, out: NDArray[np.floating]) -> None:
        """Read columns of some rows, from `start` on, into out, (k, columns)."""
        places, numbers = planes["places"], planes["numbers"]
        for place, index in enumerate(chosen):
            decode_places(places[index], numbers[index], start, out[place])

    def left_over(self, planes: Planes, index: int, row: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the row and what was left out of it."""
        if not self.feedback:
            return row
        whole = np.empty_like(row)
        self._residual.decode(planes, np.array([index]), 0, whole[None])
        whole += row
        return whole
