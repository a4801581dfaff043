"""The seam between the server and where its rows are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.decision import NearMedian, RankMean
from demoa.core.types import Floats, Matrix


class Store(Protocol):
    """Holds N rows of d numbers; says what the server may ask of them.

    `Any` stands for a (d,) vector of the store's own library: NumPy, or torch on a device.
    """

    rows: int
    width: int
    shard: Any | None
    """Which columns of whole rows these are, where they are cut over several workers."""

    @property
    def lost(self) -> tuple[int, ...]:
        """Rows of a saved state that could not be had back; they are zero."""
        ...

    def resized(self, rows: int) -> Self:
        """Return a store of zero rows, like this one, with another number of them; the server's own stay as many."""
        ...

    def adopt(self, vector: Any) -> Any:
        """Return the caller's vector in the store's own library and device, copied only if it must be."""
        ...

    def read(self, index: int) -> Any:
        """Return a copy of one row, (d,)."""
        ...

    def copy_of(self, index: int) -> Any:
        """Return all that is kept of a row, to be put back later, here or in a store that is like this one."""
        ...

    def put_back(self, index: int, copy: Any) -> None:
        """Set row `index` to what `copy_of` gave, to the bit."""
        ...

    def blend(self, index: int, keep: float, gain: float, vector: Any) -> None:
        """Set row `index` to keep * row + gain * vector."""
        ...

    def blended(self, row: Any, keep: float, gain: float, vector: Any) -> Any:
        """Return keep * row + gain * vector, (d,), for two vectors of the store's library."""
        ...

    def moved(self, start: Any, gain: float, vector: Any) -> tuple[Any, float]:
        """Return start + gain * vector, (d,), and its squared norm, which is not finite where the vector is not."""
        ...

    def gram(self, fresh: NDArray[np.intp]) -> Floats:
        """Return the inner products of the fresh rows with all rows, (k, N)."""
        ...

    def combine(self, weights: Floats) -> Any:
        """Return weights @ rows, (d,); rows of weight 0 are not read."""
        ...

    def accumulate(self, total: Any | None, factor: float, weights: Floats) -> Any:
        """Return factor * total + weights @ rows, (d,) in float64; None counts as zero, total is written over."""
        ...

    def rounded(self, total: Any) -> Any:
        """Return a vector of float64, (d,), in the dtype of the rows."""
        ...

    def square(self, index: int) -> float:
        """Return the squared norm of a row."""
        ...

    def squared_distance(self, weights: Floats, vector: Any) -> float:
        """Return |weights @ rows - vector|^2."""
        ...

    def coordinatewise(self, matrix: Matrix, decision: RankMean | NearMedian) -> Any:
        """Return the decision applied to each column of matrix @ rows, (d,); the matrix, (m, N), is sparse."""
        ...

    def moments(self, chosen: NDArray[np.intp], scale: Floats) -> tuple[Any, Any]:
        """Return the mean and the unbiased standard deviation, per column, of scale_j * row chosen_j, (d,) each."""
        ...

    def inner(self, vector: Any, chosen: NDArray[np.intp]) -> Floats:
        """Return the inner product of each chosen row with a vector, (k,)."""
        ...

    def squared_norm(self, vector: Any) -> float:
        """Return |vector|^2; it is not finite where the vector is not."""
        ...

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what must be saved to get the same rows back, by name; not copied where it can be."""
        ...

    def settle(self) -> None:
        """Take note that what was returned by `arrays` is saved, and the state before it is not needed any more."""
        ...

    def loaded(self, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Return a store like this one that holds the rows of saved `arrays`; this one is untouched."""
        ...
