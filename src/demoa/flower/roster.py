"""Who is who: clients by their keys, and the nodes under which they are reached at the moment."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from logging import INFO, WARNING
from typing import Any

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common import log
from flwr.serverapp import Grid

from demoa.core.checks import require
from demoa.core.errors import ConfigError, DemoaError, first_line
from demoa.flower.exchange import exchange
from demoa.server.round import ClientId
from demoa.server.server import Server

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


ROLL_CALL_SECONDS = 5.0
"""After so long without an answer, a client is asked again."""

IDENTITIES: dict[str, Callable[[Grid], Named]] = {"key": by_key, "node": by_node, "partition": by_partition}


class Attendance:
    """Who can be reached, and for how many rounds the others have been away.

    Attributes:
        nodes: The node of each client that can be reached, as of the last meeting.
        away: For how many rounds in a row each client could not be reached.
    """

    def __init__(self, find: Callable[[Grid], Named], *, may_join: bool, leaves_after: int | None) -> None:
        """Take what finds the clients, whether new ones may join, and after how many rounds away one is forgotten."""
        require(leaves_after is None or leaves_after >= 1, "leaves_after", leaves_after, "at least 1, or None")
        self._find = find
        self._may_join, self._leaves_after = may_join, leaves_after
        self.nodes: Named = {}
        self.away: dict[ClientId, int] = {}

    def wait(self, grid: Grid, count: int, seconds: float) -> list[ClientId]:
        """Return the first `count` clients that are there; raise ConfigError if they do not come in time."""
        deadline = time.monotonic() + seconds
        told = -1
        while True:
            found = self._find(grid)
            if len(found) >= count:
                return sorted(found, key=_natural)[:count]
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"{len(found)} of {count} clients came within {seconds:g} s; start more, or wait longer"
                )
            if len(found) != told:
                told = len(found)
                log(INFO, "%s of %s clients are there", told, count)
            time.sleep(0.5)

    def roll_call(self, grid: Grid, seconds: float) -> None:
        """Wait until every client that can be reached has answered something, be it an error.

        What was killed in the middle of a round leaves clients behind that wait for the rest of a message, and clients
        that are gone and still listed. The SuperLink finds both out within a minute.
        """
        deadline = time.monotonic() + seconds
        silent = set(self._find(grid).values())
        while silent and time.monotonic() < deadline:
            log(INFO, "Waits until %s clients answer again", len(silent))
            question = RecordDict({"config": ConfigRecord({"ask": "partition"})})
            messages = [Message(question, node, MessageType.QUERY) for node in sorted(silent)]
            replies = exchange(grid, messages, timeout=ROLL_CALL_SECONDS, poll=0.2)
            nodes = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
            silent -= {nodes.get(reply.metadata.reply_to_message_id) for reply in replies}
            silent &= set(self._find(grid).values())

    def meet(self, grid: Grid, server: Server) -> dict[str, Any] | None:
        """Find out who can be reached; let in who may join, let go who was away for too long, and return who they are.

        Returns None if nobody came or left, or if the server's rule would not stand it.
        """
        self.nodes = self._find(grid)
        self.away = {client: 0 if client in self.nodes else self.away.get(client, 0) + 1 for client in server.clients}
        limit = self._leaves_after
        left = [client for client, rounds in self.away.items() if limit is not None and rounds > limit]
        joined = [client for client in self.nodes if client not in self.away] if self._may_join else []
        if not left and not joined:
            return None
        try:
            server.reseat([*(client for client in server.clients if client not in left), *joined])
        except DemoaError as error:
            log(WARNING, "The roster stays as it is: %s", first_line(error))
            return None
        log(INFO, "The roster changes: %s come, %s leave for good", joined, left)
        return {"round": server.round, "joined": joined, "left": left}


def _natural(name: ClientId) -> tuple[int, str]:
    """Order numbers by their size, and before other names."""
    return (name, "") if isinstance(name, int) else (2**63, name)
