"""All that a server knows between two rounds, to and from a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.cache import RowCache
from demoa.aggregation.stores.saved import matching
from demoa.aggregation.stores.store import Store
from demoa.core.arrays import to_numpy
from demoa.core.errors import StoreError
from demoa.core.types import Floats
from demoa.server import checkpoint


@dataclass
class ServerState:
    """What a server knows between two rounds.

    Attributes:
        cache: The rows, those of the clients first, and their inner products.
        parameters: x, (d,), in the library of the store.
        scale: Client i's momentum is scale_i times its row, (n,).
        last_seen: The round in which each client's vector was last taken, (n,); 0 for never.
        round: How many rounds have begun.
        last_lr: The step size of the last step that was made; None if there was none.
    """

    cache: RowCache
    parameters: Any
    scale: Floats
    last_seen: NDArray[np.int64]
    round: int = 0
    last_lr: float | None = None


def reseated(state: ServerState, places: list[int | None], store: Store) -> ServerState:
    """Return a state whose rows are some of another's, in another order, and zero rows for newcomers.

    Args:
        state: It is left as it is.
        places: For each client, where its row was; None for one that is new. Rows of the server's own come after them.
        store: Zero rows, one for each client and each of the server's own.
    """
    clients = len(state.scale)
    own = range(clients, state.cache.store.rows)
    sketches = state.cache.sketches
    cache = RowCache(store, sketches=sketches and sketches.of(store))
    for place, before in enumerate([*places, *own]):
        if before is not None:
            cache.put_back(place, state.cache.store.copy_of(before))
    return ServerState(
        cache=cache,
        parameters=state.parameters,
        scale=np.array([1.0 if before is None else state.scale[before] for before in places]),
        last_seen=np.array([0 if before is None else state.last_seen[before] for before in places], np.int64),
        round=state.round,
        last_lr=state.last_lr,
    )


def saved_roster(path: str | os.PathLike[str]) -> list[str | int]:
    """Return the names of the clients in a saved state."""
    header, _ = checkpoint.read(path)
    try:
        return list(header["made_with"]["clients"])
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path} does not hold the state of a server: {error!r}") from error


def save_state(path: str | os.PathLike[str], state: ServerState, made_with: dict[str, Any]) -> None:
    """Write the state, and what must agree in the server that loads it."""
    arrays = {
        "parameters": to_numpy(state.parameters),
        "scale": state.scale,
        "last_seen": state.last_seen,
        **state.cache.arrays(),
        **{f"store.{name}": array for name, array in state.cache.store.arrays().items()},
    }
    header = {
        "round": state.round,
        "last_lr": state.last_lr,
        "stale": state.cache.stale,
        "table": state.cache.has_table,
        "made_with": made_with,
    }
    shard = state.cache.store.shard
    if shard is None:
        checkpoint.write(path, header, arrays)
    else:
        from demoa.server import shards  # needs torch

        shards.write(path, shard, header, arrays)


def load_state(path: str | os.PathLike[str], present: ServerState, made_with: dict[str, Any]) -> ServerState:
    """Return the state in a file, checked against a server's present state, which is left as it is."""
    shard = present.cache.store.shard
    if shard is None:
        header, arrays = checkpoint.read(path)
    else:
        from demoa.server import shards  # needs torch

        header, arrays = shards.read(path, shard)
    try:
        return _checked_state(path, present, made_with, header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{path} does not hold the state of a server: {error!r}") from error


def _checked_state(
    path: str | os.PathLike[str],
    present: ServerState,
    made_with: dict[str, Any],
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
) -> ServerState:
    saved = header["made_with"]
    for key, mine in made_with.items():
        if saved.get(key) != mine:
            raise StoreError(f"{path} was saved by a server with {key} = {saved.get(key)}, this one has {mine}")
    round_number, stale = header["round"], header["stale"]
    if type(round_number) is not int or round_number < 0:
        raise ValueError(f"round {round_number!r}")
    if not all(type(row) is int and 0 <= row < present.cache.store.rows for row in stale):
        raise ValueError(f"stale rows {stale!r}")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("an array that is not finite")
    store = present.cache.store
    clients = present.scale.shape
    parameters = to_numpy(present.parameters)
    loaded = store.loaded({k.removeprefix("store."): v for k, v in arrays.items() if k.startswith("store.")})
    if "written" in arrays:
        matching(arrays, "written", (store.rows,), np.dtype(np.uint8))
    if header.get("table", True):
        matching(arrays, "products", (store.rows, store.rows), np.dtype(np.float64))
    sketches = present.cache.sketches
    cache = RowCache(loaded, sketches=sketches and sketches.of(loaded), stale=stale)
    cache.load(arrays)
    last_seen = matching(arrays, "last_seen", clients, np.dtype(np.int64)).copy()
    last_seen[list(loaded.lost)] = 0  # as if they had never answered
    return ServerState(
        cache=cache,
        parameters=store.adopt(matching(arrays, "parameters", parameters.shape, parameters.dtype)),
        scale=matching(arrays, "scale", clients, np.dtype(np.float64)),
        last_seen=last_seen,
        round=round_number,
        last_lr=header["last_lr"],
    )
