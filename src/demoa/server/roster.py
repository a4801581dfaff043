"""The clients of a server, and where each one's row is."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from demoa.core.checks import require, whole_number
from demoa.core.errors import ConfigError
from demoa.server.round import ClientId

NAMES = "a number of clients, or a list of different names, each text or a whole number"


class Roster:
    """The clients' names, in the order of their rows."""

    def __init__(self, clients: Any) -> None:
        """Take how many clients there are (named 0, 1, ...), or their names."""
        if as_name(clients) is not None and not isinstance(clients, str):
            names: list[Any] = list(range(whole_number("clients", clients, least=1)))
        else:
            require(hasattr(clients, "__iter__") and not isinstance(clients, str | bytes), "clients", clients, NAMES)
            names = [as_name(name) for name in clients]
        require(None not in names and len(names) >= 1, "clients", clients, NAMES)
        self.names: tuple[ClientId, ...] = tuple(names)
        self._index = {name: index for index, name in enumerate(self.names)}
        require(len(self._index) == len(self.names), "clients", clients, "names without duplicates")

    def __len__(self) -> int:
        return len(self.names)

    def find(self, client: Any) -> int | None:
        """Return the row of a client; None for one that is not on the roster."""
        name = as_name(client)
        return None if name is None else self._index.get(name)

    def row(self, client: Any) -> int:
        """Return the row of a client, or raise ConfigError."""
        index = self.find(client)
        if index is None:
            raise ConfigError(f"no client {client!r} is on the roster of {len(self)}: {self.names[:5]} ...")
        return index

    def rows(self, clients: Iterable[Any] | None) -> list[int]:
        """Return the rows of some clients, without duplicates, in their order; all of them for None."""
        if clients is None:
            return list(range(len(self)))
        allowed = "a list of clients, or None for everyone"
        require(hasattr(clients, "__iter__") and not isinstance(clients, str | bytes), "asked", clients, allowed)
        found = dict.fromkeys(map(self.row, clients))
        return list(found)


def as_name(value: Any) -> ClientId | None:
    """Return a client's name as plain text or a plain int; None for what cannot be a name."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers has __index__, too
        return None
