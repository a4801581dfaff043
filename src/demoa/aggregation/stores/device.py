"""Rows as one torch tensor, on any device that torch knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from demoa.aggregation.decision import NearMedian, RankMean
from demoa.aggregation.stores.saved import matching
from demoa.core.arrays import dtype_name
from demoa.core.types import Floats, Matrix

BLOCK_ENTRIES = 1 << 22
"""Numbers that are converted to float64, or sorted, at a time: bounds the extra memory."""


class DeviceStore:
    """Rows as one torch tensor, float32 or float64, (N, d), summed in float64 like `DenseStore`."""

    shard: None = None
    lost: tuple[int, ...] = ()

    def __init__(self, rows: torch.Tensor) -> None:
        """Take the rows as they are, without a copy."""
        self._rows = rows
        self.rows, self.width = rows.shape

    @classmethod
    def zeros(cls, rows: int, like: torch.Tensor) -> DeviceStore:
        """Return a store of zero rows with the length, dtype and device of the vector `like`, (d,)."""
        return cls(like.new_zeros((rows, len(like))))

    def resized(self, rows: int) -> DeviceStore:
        """Return a store of zero rows, like this one, with another number of them."""
        return DeviceStore(self._rows.new_zeros((rows, self.width)))

    def adopt(self, vector: Any) -> torch.Tensor:
        """Return the vector as a tensor on this store's device."""
        return torch.as_tensor(vector).detach().to(self._rows.device)

    def read(self, index: int) -> torch.Tensor:
        """Return a copy of one row, (d,)."""
        return self._rows[index].clone()

    def copy_of(self, index: int) -> torch.Tensor:
        """Return a copy of one row, (d,)."""
        return self.read(index)

    def put_back(self, index: int, copy: torch.Tensor) -> None:
        """Set row `index` to what `copy_of` gave."""
        self._rows[index] = copy

    def blend(self, index: int, keep: float, gain: float, vector: torch.Tensor) -> None:
        """Set row `index` to keep * row + gain * vector."""
        self._rows[index].copy_(self.blended(self._rows[index], keep, gain, vector))

    def blended(self, row: torch.Tensor, keep: float, gain: float, vector: torch.Tensor) -> torch.Tensor:
        """Return keep * row + gain * vector, (d,)."""
        return (keep * row.double() + gain * vector.double()).to(row.dtype)

    def moved(self, start: torch.Tensor, gain: float, vector: torch.Tensor) -> tuple[torch.Tensor, float]:
        """Return start + gain * vector, (d,), and its squared norm."""
        result = self.blended(start, 1.0, gain, vector)
        return result, self.squared_norm(result)

    def gram(self, fresh: NDArray[np.intp]) -> Floats:
        """Return the inner products of the fresh rows with all rows, (k, N)."""
        total = torch.zeros(len(fresh), self.rows, dtype=torch.float64, device=self._rows.device)
        index = torch.as_tensor(fresh, device=self._rows.device)
        for block in self._blocks():
            wide = block.double()
            total += wide[index] @ wide.T
        products = total.cpu().numpy()
        square = products[:, fresh]
        products[:, fresh] = (square + square.T) / 2
        return products

    def combine(self, weights: Floats) -> torch.Tensor:
        """Return weights @ rows, (d,); rows of weight 0 are not read."""
        return self.rounded(self.accumulate(None, 0.0, weights))

    def accumulate(self, total: torch.Tensor | None, factor: float, weights: Floats) -> torch.Tensor:
        """Return factor * total + weights @ rows, (d,) in float64; None counts as zero, total is written over."""
        chosen = np.flatnonzero(weights)
        index = torch.as_tensor(chosen, device=self._rows.device)
        row = torch.as_tensor(weights[chosen], device=self._rows.device)
        sums = torch.cat([row @ block[index].double() for block in self._blocks()])
        return sums if total is None else total.mul_(factor).add_(sums)

    def rounded(self, total: torch.Tensor) -> torch.Tensor:
        """Return a vector of float64, (d,), in the dtype of the rows."""
        return total.to(self._rows.dtype, copy=True)

    def square(self, index: int) -> float:
        """Return the squared norm of a row."""
        return self.squared_norm(self._rows[index])

    def squared_distance(self, weights: Floats, vector: torch.Tensor) -> float:
        """Return |weights @ rows - vector|^2."""
        return self.squared_norm(self.blended(self.combine(weights), 1.0, -1.0, vector))

    def coordinatewise(self, matrix: Matrix, decision: RankMean | NearMedian) -> torch.Tensor:
        """Return the decision applied to each column of matrix @ rows, (d,); the matrix, (m, N), is sparse."""
        mixing = torch.as_tensor(matrix.toarray(), dtype=self._rows.dtype, device=self._rows.device)
        if isinstance(decision, NearMedian):
            mixing = mixing[torch.as_tensor(decision.chosen, device=mixing.device)]
        parts = []
        for block in self._blocks():
            ranked = (mixing @ block).sort(dim=0).values.double()
            if isinstance(decision, RankMean):
                parts.append(ranked[decision.low : decision.high + 1].mean(dim=0))
            else:
                parts.append(_near_median(ranked, decision.keep))
        return torch.cat(parts).to(self._rows.dtype)

    def _blocks(self) -> tuple[torch.Tensor, ...]:
        return torch.split(self._rows, max(1, BLOCK_ENTRIES // self.rows), dim=1)

    def moments(self, chosen: NDArray[np.intp], scale: Floats) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean and the unbiased standard deviation, per column, of scale_j * row chosen_j, (d,) each."""
        index = torch.as_tensor(chosen, device=self._rows.device)
        factors = torch.as_tensor(scale, device=self._rows.device)[:, None]
        means, deviations = [], []
        for block in self._blocks():
            rows = factors * block[index].double()
            mean = rows.mean(dim=0)
            means.append(mean)
            deviations.append(((rows - mean).square().sum(dim=0) / max(1, len(chosen) - 1)).sqrt())
        return torch.cat(means).to(self._rows.dtype), torch.cat(deviations).to(self._rows.dtype)

    def inner(self, vector: torch.Tensor, chosen: NDArray[np.intp]) -> Floats:
        """Return the inner product of each chosen row with a vector, (k,)."""
        index = torch.as_tensor(chosen, device=self._rows.device)
        total = torch.zeros(len(chosen), dtype=torch.float64, device=self._rows.device)
        width = max(1, BLOCK_ENTRIES // self.rows)
        for block, piece in zip(self._blocks(), torch.split(vector, width), strict=True):
            total += block[index].double() @ piece.double()
        return np.asarray(total.cpu().numpy())

    def squared_norm(self, vector: torch.Tensor) -> float:
        """Return |vector|^2; it is not finite where the vector is not."""
        return sum((float(part.double().square().sum()) for part in torch.split(vector, BLOCK_ENTRIES)), 0.0)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the rows, by name, in main memory."""
        return {"rows": self._rows.cpu().numpy()}

    def settle(self) -> None:
        """There is nothing beside what was saved."""

    def loaded(self, arrays: Mapping[str, NDArray[np.generic]]) -> DeviceStore:
        """Return a store that holds the saved rows; this one is untouched."""
        dtype = np.dtype(dtype_name(self._rows))
        rows = matching(arrays, "rows", (self.rows, self.width), dtype)
        return DeviceStore(torch.as_tensor(rows, device=self._rows.device))


def _near_median(ranked: torch.Tensor, keep: int) -> torch.Tensor:
    """Return, per sorted column of (m, b), the mean of the `keep` values nearest to the median, (b,)."""
    count = len(ranked)
    median = 0.5 * ranked[(count - 1) // 2] + 0.5 * ranked[count // 2]
    starts = (median - ranked[: count - keep] > ranked[keep:] - median).sum(dim=0)
    window = starts + torch.arange(keep, device=ranked.device)[:, None]
    return ranked.gather(0, window).mean(dim=0)
