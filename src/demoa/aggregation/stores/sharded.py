"""Rows cut by columns over the workers of a process group: each holds its columns of every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from demoa.aggregation.decision import NearMedian, RankMean
from demoa.aggregation.stores.kinds import Bytes, Dense, StoreKind
from demoa.aggregation.stores.store import Store
from demoa.core.arrays import like, to_numpy
from demoa.core.checks import whole_number
from demoa.core.errors import ConfigError, StoreError, first_line
from demoa.core.types import Floats, Matrix

ALIGNED = 64
"""Pieces begin at multiples of this, so that vectors of registers stay whole."""


@dataclass(frozen=True)
class Shard:
    """One worker's part of every vector of `width` numbers.

    Attributes:
        width: How long whole vectors are.
        rank: Which worker this is.
        count: How many there are.
    """

    width: int
    rank: int
    count: int

    @classmethod
    def connect(cls, width: int, *, backend: str = "gloo", seconds: float = 300.0) -> Shard:
        """Meet the other workers, as `torchrun` has told this process where they are.

        Args:
            width: How long whole vectors are.
            backend: What carries the sums; "nccl" where the rows are on GPUs.
            seconds: How long to wait for a worker before it counts as lost.
        """
        if not dist.is_initialized():
            try:
                dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
            except (ValueError, RuntimeError) as error:
                raise ConfigError(
                    f"the workers do not meet: {first_line(error)}; start them with torchrun --nproc-per-node N"
                ) from error
        return cls(whole_number("width", width, least=1), dist.get_rank(), dist.get_world_size())

    def bounds(self, rank: int | None = None) -> tuple[int, int]:
        """Return the first column of a worker's piece, and the one after its last; this worker's if none is named."""
        place = self.rank if rank is None else rank
        blocks = -(-self.width // ALIGNED)
        start, stop = (ALIGNED * (blocks * one // self.count) for one in (place, place + 1))
        return min(start, self.width), min(stop, self.width)

    def cut(self, vector: Any) -> Any:
        """Return this worker's piece of a whole vector, (d,)."""
        start, stop = self.bounds()
        return vector[start:stop]

    def gather(self, piece: Any) -> Any:
        """Return the whole vector, (d,), of which each worker has a piece; every worker must ask for it."""
        mine = torch.from_numpy(np.array(to_numpy(piece)))
        pieces = [mine.new_empty(stop - start) for start, stop in map(self.bounds, range(self.count))]
        longest = max(len(one) for one in pieces)
        padded = mine.new_zeros(longest)
        padded[: len(mine)] = mine
        parts = self._from_all(padded)
        whole = torch.cat([part[: len(one)] for part, one in zip(parts, pieces, strict=True)])
        return like(piece, whole.numpy())

    def sum(self, numbers: Floats) -> Floats:
        """Return the sum over all workers, added up in their order: every worker has the same bits."""
        return np.asarray(sum(part.numpy() for part in self._from_all(torch.from_numpy(np.ascontiguousarray(numbers)))))

    def wait(self) -> None:
        """Wait until all workers are here."""
        self.sum(np.zeros(1))

    def disconnect(self) -> None:
        """Wait until all workers are here, and leave them: a process that ends without it may take others along."""
        if dist.is_initialized():
            self.wait()
            dist.destroy_process_group()

    def _from_all(self, mine: torch.Tensor) -> list[torch.Tensor]:
        if not dist.is_initialized():
            raise StoreError(f"worker {self.rank} of {self.count} has left the others; start all of them again")
        device = torch.device("cuda") if dist.get_backend() == "nccl" else mine.device
        parts = [torch.empty_like(mine, device=device) for _ in range(self.count)]
        try:
            dist.all_gather(parts, mine.to(device))
        except RuntimeError as error:
            dist.destroy_process_group()  # a process that ends with threads of a broken group may be aborted
            raise StoreError(
                f"worker {self.rank} of {self.count} lost another one: {first_line(error)}; "
                "start all of them again, as many as you like: the run goes on from its last saved state"
            ) from error
        return [part.cpu() for part in parts]


@dataclass(frozen=True)
class Sharded(StoreKind):
    """Each worker keeps its columns of every row: a server of many machines, started by `torchrun`.

    Every worker makes the same calls, each with its own pieces of parameters and vectors (`Shard.cut`); reports hold
    pieces, too (`Shard.gather`).

    Args:
        shard: This worker's part.
        inner: How it keeps its columns.
    """

    shard: Shard
    inner: StoreKind = field(default_factory=Dense)

    def make(self, clients: int, own: int, like: Any) -> Store:
        """Return zero rows of this worker's columns."""
        start, stop = self.shard.bounds()
        if len(like) != stop - start:
            raise ConfigError(
                f"worker {self.shard.rank} has columns {start} to {stop}, its parameters have {len(like)} entries; "
                "cut them with Shard.cut"
            )
        return ShardedStore(self.inner.make(clients, own, like), self.shard)

    def described(self) -> dict[str, Any]:
        """Return what must agree: how the columns are kept, not how many workers there are."""
        return self.inner.described()

    def largest_norm(self, dtype: str) -> float:
        """Return how long a vector of this dtype may be."""
        return self.inner.largest_norm(dtype)

    def entries(self, width: int) -> int:
        """Return how long whole vectors are."""
        return self.shard.width

    def size(self, clients: int, width: int, itemsize: int) -> Bytes:
        """Return what this worker's columns take."""
        start, stop = self.shard.bounds()
        return self.inner.size(clients, stop - start, itemsize)


class ShardedStore:
    """Some columns of all rows. What depends on all columns is added up over the workers."""

    shard: Shard | None

    def __init__(self, local: Store, shard: Shard) -> None:
        """Take the store of this worker's columns."""
        self._local, self._shard = local, shard
        self.shard = shard
        self.lost: tuple[int, ...] = ()
        self.rows, self.width = local.rows, local.width

    def resized(self, rows: int) -> ShardedStore:
        """Return a store of zero rows, like this one, with another number of them."""
        return ShardedStore(self._local.resized(rows), self._shard)

    def adopt(self, vector: Any) -> Any:
        """Return the caller's piece in the store's own library and device."""
        return self._local.adopt(vector)

    def read(self, index: int) -> Any:
        """Return a copy of this worker's piece of one row."""
        return self._local.read(index)

    def copy_of(self, index: int) -> Any:
        """Return all that this worker keeps of a row, to be put back later."""
        return self._local.copy_of(index)

    def put_back(self, index: int, copy: Any) -> None:
        """Set row `index` to what `copy_of` gave."""
        self._local.put_back(index, copy)

    def blend(self, index: int, keep: float, gain: float, vector: Any) -> None:
        """Set row `index` to keep * row + gain * vector."""
        self._local.blend(index, keep, gain, vector)

    def blended(self, row: Any, keep: float, gain: float, vector: Any) -> Any:
        """Return keep * row + gain * vector."""
        return self._local.blended(row, keep, gain, vector)

    def moved(self, start: Any, gain: float, vector: Any) -> tuple[Any, float]:
        """Return start + gain * vector, and the squared norm of the whole."""
        moved, square = self._local.moved(start, gain, vector)
        return moved, self._total(square)

    def gram(self, fresh: NDArray[np.intp]) -> Floats:
        """Return the inner products of the fresh rows with all rows, (k, N)."""
        return self._shard.sum(self._local.gram(fresh))

    def combine(self, weights: Floats) -> Any:
        """Return this worker's piece of weights @ rows."""
        return self._local.combine(weights)

    def accumulate(self, total: Any | None, factor: float, weights: Floats) -> Any:
        """Return this worker's piece of factor * total + weights @ rows, in float64."""
        return self._local.accumulate(total, factor, weights)

    def rounded(self, total: Any) -> Any:
        """Return a piece of float64 in the dtype of the rows."""
        return self._local.rounded(total)

    def square(self, index: int) -> float:
        """Return the squared norm of a whole row."""
        return self._total(self._local.square(index))

    def squared_distance(self, weights: Floats, vector: Any) -> float:
        """Return |weights @ rows - vector|^2 of the whole."""
        return self._total(self._local.squared_distance(weights, vector))

    def coordinatewise(self, matrix: Matrix, decision: RankMean | NearMedian) -> Any:
        """Return the decision applied to each of this worker's columns of matrix @ rows."""
        return self._local.coordinatewise(matrix, decision)

    def moments(self, chosen: NDArray[np.intp], scale: Floats) -> tuple[Any, Any]:
        """Return this worker's piece of mean and deviation of scale_j * row chosen_j."""
        return self._local.moments(chosen, scale)

    def inner(self, vector: Any, chosen: NDArray[np.intp]) -> Floats:
        """Return the inner product of each chosen row with a vector, (k,)."""
        return self._shard.sum(self._local.inner(vector, chosen))

    def squared_norm(self, vector: Any) -> float:
        """Return |vector|^2 of the whole; it is not finite where the vector is not."""
        return self._total(self._local.squared_norm(vector))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return this worker's columns of what must be saved."""
        return self._local.arrays()

    def settle(self) -> None:
        """Take note that what was returned by `arrays` is saved."""
        self._local.settle()

    def loaded(self, arrays: Mapping[str, NDArray[np.generic]]) -> ShardedStore:
        """Return a store that holds the saved columns; this one is untouched."""
        found = ShardedStore(self._local.loaded(arrays), self._shard)
        missing = np.zeros(self.rows)
        missing[list(found._local.lost)] = 1.0
        found.lost = tuple(np.flatnonzero(self._shard.sum(missing)).tolist())
        for index in found.lost:  # a row that one worker has lost is of no use to the others
            row = found._local.read(index)
            found._local.blend(index, 0.0, 0.0, row)
        return found

    def _total(self, number: float) -> float:
        return float(self._shard.sum(np.array([number]))[0])
