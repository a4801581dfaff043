"""The gate: what a vector must be before it may touch a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.aggregation.stores.store import Store
from demoa.core.arrays import dtype_name, is_plain
from demoa.core.errors import UpdateRejected
from demoa.server.round import OpenRound


@dataclass(frozen=True)
class Gate:
    """Refuses vectors that are malformed, not asked for, or out of bounds.

    Args:
        width: How many entries a vector has.
        dtype: The name of its dtype.
        largest: The longest norm that can be worked with.
        norm_limit: The longest norm that is accepted, if there is a limit.
    """

    width: int
    dtype: str
    largest: float
    norm_limit: float | None = None

    def check_sender(self, client: Any, known: bool, current: OpenRound | None, number: Any) -> OpenRound:
        """Return the open round if this client may send a vector to it now, else raise UpdateRejected."""
        if not known:
            raise UpdateRejected(client, "unknown_client", "no client of that name is on the roster")
        if current is None:
            raise UpdateRejected(client, "no_open_round", "no round is open; wait to be asked")
        if number is not None and not (np.isscalar(number) and number == current.number):
            raise UpdateRejected(client, "wrong_round", f"it is for round {number!r}, round {current.number} is open")
        if client not in current.asked:
            raise UpdateRejected(client, "not_asked", f"the client was not asked in round {current.number}")
        if client in current.accepted:
            raise UpdateRejected(client, "duplicate", f"round {current.number} already has its vector")
        return current

    def check_vector(self, client: Any, vector: Any, store: Store) -> Any:
        """Return the vector in the store's library if it may be used, else raise UpdateRejected."""
        if not is_plain(vector):
            kind = type(vector).__name__
            raise UpdateRejected(client, "kind", f"it is a {kind}, it must be a NumPy array or dense torch tensor")
        if dtype_name(vector) != self.dtype:
            raise UpdateRejected(client, "dtype", f"its dtype is {dtype_name(vector)}, it must be {self.dtype}")
        if tuple(vector.shape) != (self.width,):
            raise UpdateRejected(client, "shape", f"its shape is {tuple(vector.shape)}, it must be ({self.width},)")
        adopted = store.adopt(vector)
        norm = float(np.sqrt(store.squared_norm(adopted)))
        if not np.isfinite(norm):
            raise UpdateRejected(client, "not_finite", "it holds NaN, infinity, or numbers that overflow")
        limit = min(self.largest, np.inf if self.norm_limit is None else self.norm_limit)
        if norm > limit:
            raise UpdateRejected(client, "norm", f"its norm is {norm:.4g}, the limit is {limit:.4g}")
        return adopted
