"""The rows that a server keeps, and the inner products between them, kept in step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.store import Store
from demoa.core.types import Floats


class RowCache:
    """A store and its table of inner products, of which only the rows written since are computed anew.

    k fresh rows out of N cost k N inner products: one pass over the rows.
    """

    def __init__(self, store: Store, *, products: Floats | None = None, stale: Iterable[int] = ()) -> None:
        """Take a store of zero rows, or one whose products are known but for the stale rows."""
        self.store = store
        self._products = np.zeros((store.rows, store.rows)) if products is None else products
        self._stale = set(stale)

    def blend(self, index: int, keep: float, gain: float, vector: Any) -> None:
        """Set row `index` to keep * row + gain * vector."""
        self._stale.add(index)  # first: a write that is cut short leaves the row out of date, too
        self.store.blend(index, keep, gain, vector)

    def combine(self, weights: Floats) -> Any:
        """Return weights @ rows, (d,)."""
        return self.store.combine(weights)

    def products(self) -> Floats:
        """Return the inner products of all rows, (N, N), after computing those that are out of date."""
        if self._stale:
            fresh = np.array(sorted(self._stale), np.intp)
            rows = self.store.gram(fresh)
            self._products[fresh, :] = rows
            self._products[:, fresh] = rows.T
            self._stale.clear()
        return self._products

    def products_of(self, chosen: NDArray[np.intp]) -> Floats:
        """Return the inner products of some rows, (k, k); only what is out of date among them costs anything."""
        if self._stale.intersection(chosen.tolist()):
            self.products()
        return self._products[np.ix_(chosen, chosen)]

    @property
    def known_products(self) -> Floats:
        """The inner products as they are known now, (N, N): those of the stale rows are out of date."""
        return self._products

    @property
    def stale(self) -> list[int]:
        """The rows whose products are out of date."""
        return sorted(self._stale)
