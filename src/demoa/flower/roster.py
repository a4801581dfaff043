"""Who is who: clients by their keys, and the nodes under which they are reached at the moment."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from logging import INFO
from typing import Any

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common import log
from flwr.serverapp import Grid

from demoa.core.errors import ConfigError
from demoa.flower.exchange import exchange
from demoa.server.round import ClientId

Named = dict[ClientId, int]
"""The node of each client, by the client's name."""


def by_key(grid: Grid) -> Named:
    """Return clients by their public keys, which the SuperLink has checked; nodes without one have no name."""
    found: Named = {}
    for node in grid.get_nodes():
        if node.public_key:
            found[hashlib.sha256(node.public_key).hexdigest()[:16]] = int(node.node_id)
    return found


def by_node(grid: Grid) -> Named:
    """Return clients by the ids that the SuperLink gave them: as good as keys while it keeps its database."""
    return {str(node): node for node in map(int, grid.get_node_ids())}


def by_partition(grid: Grid) -> Named:
    """Return clients by the partition that they say they have. For simulations: a client may say anything."""
    question = RecordDict({"config": ConfigRecord({"ask": "partition"})})
    messages = [Message(question, node, MessageType.QUERY) for node in grid.get_node_ids()]
    found: Named = {}
    for reply in exchange(grid, messages, timeout=60, poll=0.05):
        if not reply.has_error():
            said: Any = reply.content["partition"]["partition-id"]
            found[int(said)] = int(reply.metadata.src_node_id)
    return found


IDENTITIES: dict[str, Callable[[Grid], Named]] = {"key": by_key, "node": by_node, "partition": by_partition}


def wait_for_clients(find: Callable[[], Named], count: int, seconds: float) -> Named:
    """Return the first `count` clients that are there, by name; raise ConfigError if they do not come in time."""
    deadline = time.monotonic() + seconds
    told = -1
    while True:
        found = find()
        if len(found) >= count:
            return {name: found[name] for name in sorted(found, key=_natural)[:count]}
        if time.monotonic() > deadline:
            raise ConfigError(f"{len(found)} of {count} clients came within {seconds:g} s; start more, or wait longer")
        if len(found) != told:
            told = len(found)
            log(INFO, "%s of %s clients are there", told, count)
        time.sleep(0.5)


def _natural(name: ClientId) -> tuple[int, str]:
    """Order numbers by their size, and before other names."""
    return (name, "") if isinstance(name, int) else (2**63, name)
