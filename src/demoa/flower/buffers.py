"""Running statistics of a model's layers: not trained, so without a row in the server, but shared all the same."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from flwr.app import ArrayRecord
from numpy.typing import NDArray

from demoa.core.errors import UpdateRejected
from demoa.flower.arrays import Layout, as_vector
from demoa.server.round import ClientId


class SharedBuffers:
    """The buffers that each client sent last, and their median per entry over all of them.

    A mean would be the liars' to choose, and so would a median over one round's clients when most of them lie: here,
    too, everyone who ever answered counts.
    """

    def __init__(self, start: ArrayRecord) -> None:
        """Take the buffers that the model starts with; there may be none."""
        self._layout = Layout.of(start) if start else Layout((), (), "float32")
        self._start = as_vector(start) if start else np.empty(0, np.float32)
        self.rows: dict[ClientId, NDArray[np.floating]] = {}

    def checked(self, client: ClientId, arrays: Any) -> NDArray[np.floating]:
        """Return what a client sent as one vector, (b,), or raise UpdateRejected."""
        if not self._layout.names:
            return self._start
        vector = self._layout.vector(client, arrays)
        if not np.isfinite(vector).all():
            raise UpdateRejected(client, "not_finite", "its buffers hold NaN or infinity")
        return vector

    def take(self, client: ClientId, vector: NDArray[np.floating]) -> None:
        """Remember what a client sent."""
        if self._layout.names:
            self.rows[client] = vector

    def keep(self, clients: Collection[ClientId]) -> None:
        """Forget whoever is not named."""
        self.rows = {client: row for client, row in self.rows.items() if client in clients}

    def arrays(self) -> ArrayRecord:
        """Return the buffers as they stand now, by name."""
        rows = list(self.rows.values())
        middle = np.median(np.stack(rows), axis=0) if rows else self._start
        return self._layout.arrays(middle.astype(self._layout.dtype))
