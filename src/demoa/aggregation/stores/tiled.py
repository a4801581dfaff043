"""Rows that are not kept as plain numbers in main memory: they are read a tile of columns at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.decision import NearMedian, RankMean
from demoa.aggregation.kernels import products
from demoa.aggregation.kernels.chunks import CHUNK
from demoa.aggregation.stores.codecs.codec import Codec, Planes
from demoa.aggregation.stores.dense import DenseStore
from demoa.aggregation.stores.saved import matching
from demoa.aggregation.stores.vectors import NumpyVectors
from demoa.core.threads import map_in_threads
from demoa.core.types import Floats, Matrix

TILE_NUMBERS = 1 << 26
"""How many numbers a tile holds at most; there is one per thread."""

GROUP = TILE_NUMBERS // CHUNK
"""Up to so many rows, tiles have their full width. Where it can be, more rows are read so many at a time: from files
that do not fit memory, long pieces of rows are read far faster than short ones, and what is summed up over columns has
the same bits for any number of rows."""

R = TypeVar("R")


class PlaneHolder(Protocol):
    """Where planes are: main memory, or files."""

    arrays: Planes

    @property
    def lost(self) -> tuple[int, ...]:
        """The rows that were found torn when a saved state was taken up; they are zero."""
        ...

    def resized(self, rows: int) -> PlaneHolder:
        """Return planes of zeros for another number of rows."""
        ...

    def write(self, index: int) -> Planes:
        """Return the planes, of which row `index` is about to be written."""
        ...

    def written(self, index: int) -> None:
        """Take note that row `index` is written."""
        ...

    def passed(self) -> None:
        """Take note that many rows were read or written."""
        ...

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved to get the same rows back."""
        ...

    def settle(self) -> None:
        """Take note that what was returned by `saved` is saved."""
        ...

    def loaded(self, arrays: Mapping[str, NDArray[Any]]) -> PlaneHolder:
        """Return planes that hold what was saved."""
        ...


class TiledStore(NumpyVectors):
    """Rows behind a codec, (n, d), and after them the server's own rows as plain numbers in main memory.

    What a codec rounds off is gone for every rule alike: tables, aggregates and rows agree.
    """

    shard: None = None

    def __init__(self, codec: Codec, planes: PlaneHolder, own: NDArray[np.floating], rows: int) -> None:
        """Take how rows are written, where to, how many there are, and the server's own, (o, d)."""
        self._codec, self._planes, self._own, self._clients = codec, planes, own, rows
        self.rows, self.width = rows + len(own), own.shape[1]
        self._touched = 0

    @property
    def lost(self) -> tuple[int, ...]:
        """Rows of a saved state that could not be had back; they are zero."""
        return self._planes.lost

    @property
    def planes(self) -> PlaneHolder:
        """Where the rows are written to."""
        return self._planes

    def resized(self, rows: int) -> TiledStore:
        """Return a store of zero rows, like this one, with another number of them; the server's own stay as many."""
        clients = rows - len(self._own)
        return TiledStore(self._codec, self._planes.resized(clients), np.zeros_like(self._own), clients)

    def read(self, index: int) -> NDArray[np.floating]:
        """Return a copy of one row, (d,), as rules see it."""
        if index >= self._clients:
            return np.array(self._own[index - self._clients])
        row = np.empty(self.width, self._own.dtype)
        self._codec.decode(self._planes.arrays, np.array([index]), 0, row[None])
        self._touch(1)
        return row

    def copy_of(self, index: int) -> dict[str, NDArray[Any]]:
        """Return all that is kept of a row: what its codec has written, what waits to be written among it."""
        if index >= self._clients:
            return {"own": self.read(index)}
        return {name: np.array(plane[index]) for name, plane in self._planes.arrays.items()}

    def put_back(self, index: int, copy: Mapping[str, NDArray[Any]]) -> None:
        """Set row `index` to what `copy_of` gave, to the bit."""
        if index >= self._clients:
            self._own[index - self._clients] = copy["own"]
            return
        planes = self._planes.write(index)
        for name, content in copy.items():
            planes[name][index] = content
        self._planes.written(index)

    def blend(self, index: int, keep: float, gain: float, vector: NDArray[np.floating]) -> None:
        """Set row `index` to keep * row + gain * vector."""
        if index >= self._clients:
            products.blend(self._own[index - self._clients], keep, gain, vector)
            return
        row = vector
        if keep != 0.0:
            row = self._codec.left_over(self._planes.arrays, index, self.read(index))
        mixed = products.blended(row, keep, gain, vector)
        self._codec.encode(self._planes.write(index), index, mixed)
        self._planes.written(index)
        self._touch(1)

    def gram(self, fresh: NDArray[np.intp]) -> Floats:
        """Return the inner products of the fresh rows with all rows, (k, N)."""
        found = np.empty((len(fresh), self.rows))
        for start in range(0, len(fresh), GROUP // 2):
            some = fresh[start : start + GROUP // 2]
            for others in _groups(np.arange(self.rows), GROUP - len(some)):
                found[start : start + len(some), others] = self._products(some, others)
        return found

    def _products(self, some: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
        places = np.arange(len(some))
        parts = self._tiles(np.concatenate([some, others]), lambda tile, start, stop: tile.gram(places))
        return np.asarray(sum(parts))[:, len(some) :]

    def combine(self, weights: Floats) -> NDArray[np.floating]:
        """Return weights @ rows, (d,); rows of weight 0 are not read."""
        return self.rounded(self.accumulate(None, 0.0, weights))

    def accumulate(self, total: Floats | None, factor: float, weights: Floats) -> Floats:
        """Return factor * total + weights @ rows, (d,) in float64; None counts as zero, total is written over."""
        chosen = np.flatnonzero(weights)
        out, kept = (np.empty(self.width), 0.0) if total is None else (total, factor)

        def add(some: NDArray[np.intp], kept: float) -> None:
            self._tiles(some, lambda tile, start, stop: tile.accumulate(out[start:stop], kept, weights[some]))

        add(chosen[:GROUP], kept)
        for some in _groups(chosen[GROUP:], GROUP):
            add(some, 1.0)
        return out

    def rounded(self, total: Floats) -> NDArray[np.floating]:
        """Return a vector of float64, (d,), in the dtype of the rows."""
        return total.astype(self._own.dtype)

    def square(self, index: int) -> float:
        """Return the squared norm of a row."""
        return products.squared_norm(self.read(index))

    def squared_distance(self, weights: Floats, vector: NDArray[np.floating]) -> float:
        """Return |weights @ rows - vector|^2."""
        return products.squared_norm(self.accumulate(None, 0.0, weights) - vector)

    def coordinatewise(self, matrix: Matrix, decision: RankMean | NearMedian) -> NDArray[np.floating]:
        """Return the decision applied to each column of matrix @ rows, (d,); the matrix, (m, N), is sparse."""
        parts = self._tiles(np.arange(self.rows), lambda tile, start, stop: tile.coordinatewise(matrix, decision))
        return np.concatenate(parts)

    def moments(self, chosen: NDArray[np.intp], scale: Floats) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the mean and the unbiased standard deviation, per column, of scale_j * row chosen_j, (d,) each."""
        places = np.arange(len(chosen))
        means, deviations = zip(*self._tiles(chosen, lambda t, start, stop: t.moments(places, scale)), strict=True)
        return np.concatenate(means), np.concatenate(deviations)

    def inner(self, vector: NDArray[np.floating], chosen: NDArray[np.intp]) -> Floats:
        """Return the inner product of each chosen row with a vector, (k,)."""

        def group(rows: NDArray[np.intp]) -> Floats:
            places = np.arange(len(rows))
            return np.asarray(sum(self._tiles(rows, lambda t, start, stop: t.inner(vector[start:stop], places))))

        return np.concatenate([np.zeros(0), *map(group, _groups(chosen, GROUP))])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved, by name, without a copy."""
        return {**self._planes.saved(), "own": self._own}

    def settle(self) -> None:
        """Take note that what was returned by `arrays` is saved."""
        self._planes.settle()

    def loaded(self, arrays: Mapping[str, NDArray[Any]]) -> TiledStore:
        """Return a store that holds the saved rows; this one is untouched."""
        own = matching(arrays, "own", self._own.shape, self._own.dtype)
        return TiledStore(self._codec, self._planes.loaded(arrays), own, self._clients)

    def _tiles(self, chosen: NDArray[np.intp], task: Callable[[DenseStore, int, int], R]) -> list[R]:
        """Return [task(rows, start, stop), ...] over tiles of the chosen rows' columns, in order."""
        aligned = self._codec.aligned
        most = max(1, min(TILE_NUMBERS // max(1, len(chosen)), CHUNK) // aligned) * aligned
        ours = chosen[chosen < self._clients]
        own = chosen[chosen >= self._clients] - self._clients

        def run(start: int) -> R:
            stop = min(start + most, self.width)
            tile = np.empty((len(chosen), stop - start), self._own.dtype)
            if len(own) == 0:
                self._codec.decode(self._planes.arrays, ours, start, tile)
            else:
                is_own = chosen >= self._clients
                part = np.empty((len(ours), stop - start), self._own.dtype)
                self._codec.decode(self._planes.arrays, ours, start, part)
                tile[~is_own], tile[is_own] = part, self._own[own, start:stop]
            return task(DenseStore(tile), start, stop)

        found = map_in_threads(run, range(0, self.width, most))
        self._touch(len(chosen))
        return found

    def _touch(self, rows: int) -> None:
        """Count rows that were read or written; after many, their pages are let go of."""
        self._touched += rows * self.width
        if self._touched >= TILE_NUMBERS:
            self._touched = 0
            self._planes.passed()


def _groups(chosen: NDArray[np.intp], size: int) -> list[NDArray[np.intp]]:
    return [chosen[start : start + size] for start in range(0, len(chosen), size)]
