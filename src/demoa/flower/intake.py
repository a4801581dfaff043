"""From replies to rows: each belongs to whoever was sent the message that it answers, and goes through the gate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from logging import WARNING
from typing import Any

from flwr.app import Message
from flwr.common import log

from demoa.core.errors import UpdateRejected, first_line
from demoa.core.memory import give_back_memory
from demoa.flower.arrays import Layout
from demoa.flower.buffers import SharedBuffers
from demoa.server.round import ClientId, Round
from demoa.server.server import Server
from demoa.simulation.adversary import Adversary

LARGE = 1 << 22
"""After a reply of so many bytes, memory is tidied up, which takes a moment."""


class Intake:
    """One round's replies on their way into the server."""

    def __init__(
        self, server: Server, task: Round, sent: Mapping[ClientId, Message], layout: Layout, buffers: SharedBuffers
    ) -> None:
        """Take the open round, the message that each client was sent, and what its reply must look like."""
        self.task = task
        self._server, self._layout, self._buffers = server, layout, buffers
        self._sent = sent

    def take(self, replies: Iterable[Message]) -> None:
        """Take replies into the rows of their clients, one by one, so that no more than one is held at a time."""
        for client, vector, buffers in self._readable(replies):
            if self._submit(client, vector):
                self._buffers.take(client, buffers)
            is_large = vector.nbytes >= LARGE
            del vector, buffers
            if is_large:
                give_back_memory()

    def take_with_lies(self, replies: Iterable[Message], adversary: Adversary) -> None:
        """Take replies as `take`, but what the Byzantine clients of a simulation send is theirs to choose."""
        vectors = {int(client): vector for client, vector, _ in self._readable(replies)}
        liars = adversary.liars([int(client) for client in self.task.asked])
        for client, vector in vectors.items():
            if client not in liars:
                self._submit(client, vector)
        sent = adversary.lies(self._server, self.task, sorted(vectors), lambda client, *_: vectors[client])
        for liar, lie in sent:
            self._submit(liar, lie)

    def _readable(self, replies: Iterable[Message]) -> Iterator[tuple[ClientId, Any, Any]]:
        """Yield client, vector and buffers of each reply that could be read."""
        # Only now: messages have no identity before they are sent.
        asked = {
            message.metadata.message_id: (message.metadata.dst_node_id, client)
            for client, message in self._sent.items()
        }
        for reply in replies:
            node, client = asked.get(reply.metadata.reply_to_message_id, (None, None))
            if client is None:
                log(WARNING, "A reply to no message of this round was left aside")
                continue
            if reply.has_error():
                log(WARNING, "client %s failed: %s", client, first_line(RuntimeError(reply.error.reason or "")))
                continue
            try:
                if reply.metadata.src_node_id != node:
                    raise UpdateRejected(client, "sender", f"the reply came from node {reply.metadata.src_node_id}")
                self._check_round(client, reply)
                records = reply.content.array_records
                vector = self._layout.vector(client, records.get("arrays"))
                buffers = self._buffers.checked(client, records.get("buffers"))
            except UpdateRejected as refusal:
                self._server.refuse(client, refusal.reason)
                log(WARNING, "%s", refusal)
            else:
                yield client, vector, buffers

    def _check_round(self, client: ClientId, reply: Message) -> None:
        """Compare the round that a client says it answers, if it says one."""
        metrics: Any = reply.content.metric_records.get("metrics") or {}
        said = metrics.get("server-round", self.task.number)
        if said != self.task.number:
            raise UpdateRejected(client, "round", f"it answers round {said}, this is round {self.task.number}")

    def _submit(self, client: ClientId, vector: Any) -> bool:
        """Return whether the server took the vector."""
        try:
            self._server.submit(client, vector, round=self.task.number)
        except UpdateRejected as refusal:
            log(WARNING, "%s", refusal)
            return False
        return True
