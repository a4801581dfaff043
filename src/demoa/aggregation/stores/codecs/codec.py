"""What a codec is: rows of numbers to and from planes of smaller ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Planes: TypeAlias = Mapping[str, NDArray[Any]]
"""What rows are written to: arrays with a row for each of them, (n, columns) each."""


class Plane(NamedTuple):
    """What a codec needs for each row: so many columns of a dtype."""

    dtype: np.dtype[Any]
    columns: int


class Codec(Protocol):
    """Writes rows of d numbers, and reads some of their columns back.

    Planes of zeros are rows of zeros.
    """

    @property
    def aligned(self) -> int:
        """Columns are read from multiples of this on."""
        ...

    def planes(self, width: int) -> dict[str, Plane]:
        """Return what rows of this width are written to."""
        ...

    def encode(self, planes: Planes, index: int, row: NDArray[np.floating]) -> None:
        """Write a row, (d,)."""
        ...

    def decode(self, planes: Planes, chosen: NDArray[np.intp], start: int, out: NDArray[np.floating]) -> None:
        """Read columns of some rows, from `start` on, into out, (k, columns)."""
        ...

    def left_over(self, planes: Planes, index: int, row: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return a row, (d,), that was read, with what was left out when it was written, where that is kept."""
        ...
