"""The rows that a server keeps, and what is known about them, kept in step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.reach import Reach
from demoa.aggregation.running import RunningCombination
from demoa.aggregation.scores import NearestScores
from demoa.aggregation.sketch import Sketches
from demoa.aggregation.stores.fitting import check_table_fits
from demoa.aggregation.stores.store import Store
from demoa.core.types import Floats

MANY = 128
"""From so many rows on, what most of them add to an aggregate is kept from round to round."""


class RowCache:
    """A store and its table of inner products, of which only the rows written since are computed anew.

    k fresh rows out of N cost k N inner products: one pass over the rows. What does not need the table does not pay
    for it, and a combination of many rows costs as much as the rows whose share in it has changed.
    """

    def __init__(self, store: Store, *, sketches: Sketches | None = None, stale: Iterable[int] = ()) -> None:
        """Take a store in which all rows are zero but the stale ones, or of which more is loaded next.

        Args:
            store: The rows.
            sketches: What inner products are computed from, if not from the rows themselves.
            stale: The rows whose products are not known.
        """
        self.store, self.sketches = store, sketches
        self._products: Floats | None = None
        self._stale = set(stale)
        self._written = np.zeros(store.rows, bool)
        self._written[list(self._stale)] = True
        self._squares, self._measured = np.zeros(store.rows), np.ones(store.rows, bool)
        self._measured[list(self._stale)] = False
        self._running = RunningCombination(store) if store.rows >= MANY else None
        self.reach = Reach(store)
        self._scores = NearestScores()

    def blend(self, index: int, keep: float, gain: float, vector: Any) -> None:
        """Set row `index` to keep * row + gain * vector."""
        self._forget(index)
        self.store.blend(index, keep, gain, vector)

    def put_back(self, index: int, copy: Any) -> None:
        """Set row `index` to what `store.copy_of` gave, to the bit."""
        self._forget(index)
        self.store.put_back(index, copy)

    def _forget(self, index: int) -> None:
        """Take note that a row is about to change."""
        if self._products is not None and index not in self._stale:
            self._scores.forget(index, self._products)
        self._stale.add(index)  # first: a write that is cut short leaves the row out of date, too
        if self._running is not None:
            self._running.forget(index, lambda: float(self.lengths(np.array([index]))[0]))
        self._measured[index] = False
        self._written[index] = True
        self.reach.forget(index)

    def combine(self, weights: Floats) -> Any:
        """Return weights @ rows, (d,); rows that were never written are zero, and not read."""
        needed = np.where(self._written, weights, 0.0)
        if self._running is None:
            return self.store.combine(needed)
        return self._running.combine(needed, int(np.count_nonzero(self._written)), self.lengths)

    def squares(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the squared norms of some rows, (k,)."""
        for index in chosen[~self._measured[chosen]]:
            self._squares[index] = self.store.square(int(index))
            self._measured[index] = True
        return self._squares[chosen]

    def lengths(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the norms of some rows, (k,)."""
        return np.sqrt(self.squares(chosen))

    def products(self) -> Floats:
        """Return the inner products of all rows, (N, N), after computing those that are out of date."""
        if self._products is None:
            check_table_fits(self.store.rows)
            self._products = np.zeros((self.store.rows, self.store.rows))
        if self._stale:
            fresh = np.array(sorted(self._stale), np.intp)
            rows = (self.sketches or self.store).gram(fresh)
            self._products[fresh, :] = rows
            self._products[:, fresh] = rows.T
            self._stale.clear()
        return self._products

    def products_of(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the inner products of some rows, (k, k); only what is out of date among them costs anything."""
        if self._products is None or self._stale.intersection(chosen.tolist()):
            return self.products()[np.ix_(chosen, chosen)]
        return self._products[np.ix_(chosen, chosen)]

    def nearest(self, scale: Floats, neighbours: int) -> int:
        """Return the row, of the first n, whose n rows scale_j * row j have the least sum of nearest distances."""
        return self._scores.least(self.products(), scale, neighbours)

    @property
    def known_products(self) -> Floats | None:
        """The inner products of all rows, (N, N), where they are up to date."""
        return None if self._stale else self._products

    @property
    def has_table(self) -> bool:
        """Whether inner products have been asked for."""
        return self._products is not None

    @property
    def stale(self) -> list[int]:
        """The rows whose products are out of date."""
        return sorted(self._stale)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved beside the store."""
        running = {} if self._running is None else self._running.arrays()
        sketches = {} if self.sketches is None else self.sketches.arrays()
        written = {"written": self._written.astype(np.uint8)}
        return {**written, **running, **sketches, **({} if self._products is None else {"products": self._products})}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was saved beside the store, but for what rows had to do with it that were lost."""
        self._stale.update(self.store.lost)
        self._measured[:] = False
        self._written = np.asarray(arrays.get("written", np.ones(self.store.rows)), bool).copy()
        if "products" in arrays:
            self._products = arrays["products"]
        if self._running is not None and not self.store.lost:
            self._running.load(arrays)
        if self.sketches is not None:
            self.sketches.load(arrays)
