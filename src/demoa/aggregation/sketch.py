"""Inner products from sketches of the rows: less exact, and at a cost that does not grow with their length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.kernels.sketching import sketch
from demoa.aggregation.stores.dense import DenseStore
from demoa.aggregation.stores.saved import matching
from demoa.aggregation.stores.store import Store
from demoa.core.arrays import to_numpy
from demoa.core.seeding import generator
from demoa.core.types import Floats


class Sketches:
    """A sketch of each row of a store, (N, size).

    The table is exact for the sketches, so that it is a table of some rows: squared distances come out within a
    share of about sqrt(2 / size) of what they are, and no rule meets one below zero.

    Whoever knows the seed can send a vector whose sketch is zero.
    """

    def __init__(self, store: Store, size: int, seed: int) -> None:
        """Take a store of zero rows, or one whose sketches are loaded next; the key is drawn from the seed."""
        self._store, self._seed = store, seed
        self._key = int(generator(seed, "sketch").integers(1 << 63))
        self._rows = np.zeros((store.rows, size))

    def of(self, store: Store) -> Sketches:
        """Return the sketches, all zero, of the rows of another store."""
        return Sketches(store, self._rows.shape[1], self._seed)

    def gram(self, fresh: NDArray[np.intp]) -> Floats:
        """Return the inner products of the fresh rows with all rows, (k, N), after sketching the fresh ones anew."""
        shard = self._store.shard
        first = 0 if shard is None else shard.bounds()[0]
        size = self._rows.shape[1]
        parts = np.array([sketch(to_numpy(self._store.read(int(row))), first, size, self._key) for row in fresh])
        self._rows[fresh] = parts if shard is None else shard.sum(parts)
        return DenseStore(self._rows).gram(fresh)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved to go on bit for bit."""
        return {"sketches": self._rows}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was saved."""
        self._rows = matching(arrays, "sketches", self._rows.shape, self._rows.dtype)
