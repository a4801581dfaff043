"""Whoever stands behind the Byzantine clients: sees what the server holds, and decides what they send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from demoa.attacks import Attack, AttackView
from demoa.core.seeding import generator
from demoa.server.round import Round
from demoa.server.server import Server


@dataclass(frozen=True)
class Adversary:
    """An attack and the clients that carry it out: 0 to byzantine - 1; the server is never told.

    Attributes:
        attack: How they lie.
        byzantine: How many they are.
        start: The parameters before the first round, (d,).
        seed: What the attack draws from.
    """

    attack: Attack
    byzantine: int
    start: Any
    seed: int

    def liars(self, sampled: Sequence[int]) -> list[int]:
        """Return the Byzantine clients among some."""
        return [client for client in sampled if client < self.byzantine]

    def honest_seen(self, server: Server, sampled: Sequence[int]) -> list[int]:
        """Return the honest clients whose rows the rule sees."""
        seen = range(len(server.clients)) if server.algorithm.delayed else sampled
        return [client for client in seen if client >= self.byzantine]

    def lies(
        self, server: Server, task: Round, sampled: Sequence[int], spoilt: Callable[[int, Round], Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield what each Byzantine client of a round sends, (d,); the honest ones have answered.

        Args:
            server: What the adversary sees.
            task: The round.
            sampled: Who takes part in it.
            spoilt: Gives what a client finds on its own, on labels that the attack may have turned around.
        """
        liars = self.liars(sampled)
        row = self._row(server, task, sampled, liars) if liars and self.attack.colludes else None
        for client in liars:
            if row is None:
                yield client, self.attack.spoil(spoilt(client, task))
            else:
                # The vector that makes the server hold the row.
                held = server.adopt(server.momentum_of(client, at_last_contact=True))
                yield client, (row - task.keep[client] * held) / task.gain

    def _row(self, server: Server, task: Round, sampled: Sequence[int], liars: list[int]) -> Any | None:
        """Ask a colluding attack for the row that the server is to hold."""
        seen = self.honest_seen(server, sampled) or range(self.byzantine, len(server.clients))
        view = AttackView(
            round=task.number,
            n=len(server.clients),
            byzantine=self.byzantine,
            honest=server.inspect(seen),
            majority=len(liars) > len(sampled) - len(liars),
            parameters=server.adopt(task.parameters),
            start=server.adopt(self.start),
            lr=server.lr,
            aggregate=lambda row: server.preview(dict.fromkeys(liars, row)),
            # Mimic looks along the same direction in every round, so its stream does not depend on the round.
            generator=generator(self.seed, "attack", type(self.attack).__name__),
        )
        return self.attack.row(view)
