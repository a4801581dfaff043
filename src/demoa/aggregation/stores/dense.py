"""Rows in main memory, as one NumPy array."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.decision import NearMedian, RankMean
from demoa.aggregation.kernels import coordinates, moments, products
from demoa.aggregation.stores.saved import matching
from demoa.aggregation.stores.vectors import NumpyVectors
from demoa.core.types import Floats, Matrix


class DenseStore(NumpyVectors):
    """Rows in main memory, float32 or float64, (N, d)."""

    shard: None = None
    lost: tuple[int, ...] = ()

    def __init__(self, rows: NDArray[np.floating]) -> None:
        """Take the rows as they are, without a copy; zeros(N, d) makes an empty cache."""
        self._rows = np.ascontiguousarray(rows)
        self.rows, self.width = self._rows.shape

    @classmethod
    def zeros(cls, rows: int, width: int, dtype: np.dtype[np.floating]) -> DenseStore:
        """Return a store of zero rows; memory is taken from the system when a row is first written."""
        return cls(np.zeros((rows, width), dtype))

    def resized(self, rows: int) -> DenseStore:
        """Return a store of zero rows, like this one, with another number of them."""
        return DenseStore.zeros(rows, self.width, self._rows.dtype)

    def read(self, index: int) -> NDArray[np.floating]:
        """Return a copy of one row, (d,)."""
        return np.array(self._rows[index])

    def copy_of(self, index: int) -> NDArray[np.floating]:
        """Return a copy of one row, (d,)."""
        return self.read(index)

    def put_back(self, index: int, copy: NDArray[np.floating]) -> None:
        """Set row `index` to what `copy_of` gave."""
        self._rows[index] = copy

    def blend(self, index: int, keep: float, gain: float, vector: NDArray[np.floating]) -> None:
        """Set row `index` to keep * row + gain * vector."""
        products.blend(self._rows[index], keep, gain, vector)

    def gram(self, fresh: NDArray[np.intp]) -> Floats:
        """Return the inner products of the fresh rows with all rows, (k, N)."""
        return products.gram(self._rows, fresh)

    def combine(self, weights: Floats) -> NDArray[np.floating]:
        """Return weights @ rows, (d,)."""
        return products.combine(self._rows, weights)

    def accumulate(self, total: Floats | None, factor: float, weights: Floats) -> Floats:
        """Return factor * total + weights @ rows, (d,) in float64; None counts as zero, total is written over."""
        return products.accumulate(self._rows, total, factor, weights)

    def rounded(self, total: Floats) -> NDArray[np.floating]:
        """Return a vector of float64, (d,), in the dtype of the rows."""
        return total.astype(self._rows.dtype)

    def square(self, index: int) -> float:
        """Return the squared norm of a row."""
        return products.squared_norm(self._rows[index])

    def squared_distance(self, weights: Floats, vector: NDArray[np.floating]) -> float:
        """Return |weights @ rows - vector|^2, without building the combination."""
        return products.squared_distance(self._rows, weights, vector)

    def coordinatewise(self, matrix: Matrix, decision: RankMean | NearMedian) -> NDArray[np.floating]:
        """Return the decision applied to each column of matrix @ rows, (d,); the matrix, (m, N), is sparse."""
        if isinstance(decision, RankMean):
            return coordinates.rank_mean(self._rows, matrix, decision.low, decision.high)
        return coordinates.near_median(self._rows, matrix[decision.chosen], decision.keep)

    def moments(self, chosen: NDArray[np.intp], scale: Floats) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the mean and the unbiased standard deviation, per column, of scale_j * row chosen_j, (d,) each."""
        return moments.mean_and_deviation(self._rows, chosen, scale)

    def inner(self, vector: NDArray[np.floating], chosen: NDArray[np.intp]) -> Floats:
        """Return the inner product of each chosen row with a vector, (k,)."""
        return moments.inner(self._rows, vector, chosen)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the rows, by name, without a copy."""
        return {"rows": self._rows}

    def settle(self) -> None:
        """There is nothing beside what was saved."""

    def loaded(self, arrays: Mapping[str, NDArray[np.generic]]) -> DenseStore:
        """Return a store that holds the saved rows; this one is untouched."""
        return DenseStore(matching(arrays, "rows", self._rows.shape, self._rows.dtype))
