"""What stores in main memory do with vectors: NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.kernels import products
from demoa.core.arrays import to_numpy


class NumpyVectors:
    """The part of a store that does not touch its rows."""

    def adopt(self, vector: Any) -> NDArray[np.floating]:
        """Return the vector as a contiguous NumPy array, sharing its memory where possible."""
        return np.ascontiguousarray(to_numpy(vector))

    def blended(
        self, row: NDArray[np.floating], keep: float, gain: float, vector: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return keep * row + gain * vector, (d,)."""
        return products.blended(row, keep, gain, vector)

    def moved(
        self, start: NDArray[np.floating], gain: float, vector: NDArray[np.floating]
    ) -> tuple[NDArray[np.floating], float]:
        """Return start + gain * vector, (d,), and its squared norm, found in the same pass."""
        return products.moved(start, gain, vector)

    def squared_norm(self, vector: NDArray[np.floating]) -> float:
        """Return |vector|^2; it is not finite where the vector is not."""
        return products.squared_norm(vector)
