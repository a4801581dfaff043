"""Whoever stands behind the Byzantine clients: sees what the server holds, and decides what they send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from demoa.attacks import Attack, AttackView
from demoa.core.seeding import generator
from demoa.server.round import Round
from demoa.server.server import Server

SEES = ("aggregated", "sampled", "all")
"""What an adversary may be shown of the honest rows; the first is the default."""

LIES_IN = ("all", "majority", "minority")
"""In which rounds an adversary may lie; the first is the default."""


def is_majority(byzantine: int, sampled: int) -> bool:
    """Say whether strictly more Byzantine than honest clients take part.

    >>> is_majority(2, 3), is_majority(2, 4)
    (True, False)
    """
    return byzantine > sampled - byzantine


@dataclass(frozen=True)
class Adversary:
    """An attack and the clients that carry it out: 0 to byzantine - 1; the server is never told.

    Attributes:
        attack: How they lie.
        byzantine: How many they are.
        honest: How many others there are.
        start: The parameters before the first round, (d,).
        first: Gives what an honest client finds in round 1, (d,), by its place among them (see `Attack.target`).
        seed: What the attack draws from.
        sees: Which honest rows the attack is shown: those that the rule sees ("aggregated"), those of this round
            ("sampled"), or one of every honest client, be it old ("all"). If there are none, it is shown all.
        lies_in: In which rounds it attacks: in "all" of them, only in those with a Byzantine "majority", or only in
            the others ("minority"). In the rest its clients behave.
    """

    attack: Attack
    byzantine: int
    honest: int
    start: Any
    first: Callable[[int], Any]
    seed: int
    sees: str = SEES[0]
    lies_in: str = LIES_IN[0]

    @cached_property
    def _target(self) -> int | None:
        """The client that the attack is about."""
        place = self.attack.target(self.honest, self.first, self._generator())
        return None if place is None else self.byzantine + place

    def _generator(self) -> np.random.Generator:
        # Mimic looks along the same direction in every round, so its stream does not depend on the round.
        return generator(self.seed, "attack", type(self.attack).__name__)

    def liars(self, sampled: Sequence[int]) -> list[int]:
        """Return the Byzantine clients among some."""
        return [client for client in sampled if client < self.byzantine]

    def honest_aggregated(self, server: Server, sampled: Sequence[int]) -> list[int]:
        """Return the honest clients whose rows the rule sees."""
        return self._honest(server, None if server.algorithm.delayed else sampled)

    def _honest(self, server: Server, among: Sequence[int] | None) -> list[int]:
        """Return the honest clients among some, or all of them."""
        clients = range(len(server.clients)) if among is None else among
        return [client for client in clients if client >= self.byzantine]

    def _shown(self, server: Server, sampled: Sequence[int]) -> list[int]:
        """Return the honest clients whose rows the attack is shown."""
        if self.sees == "aggregated":
            shown = self.honest_aggregated(server, sampled)
        else:
            shown = self._honest(server, sampled if self.sees == "sampled" else None)
        return shown or self._honest(server, None)

    def lies(
        self, server: Server, task: Round, sampled: Sequence[int], train: Callable[[int, Round, bool], Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yield what each Byzantine client of a round sends, (d,); the honest ones have answered.

        Args:
            server: What the adversary sees.
            task: The round.
            sampled: Who takes part in it.
            train: Gives what a client finds on its own in a round, on labels that are turned around or not.
        """
        liars = self.liars(sampled)
        if self.lies_in not in ("all", "majority" if is_majority(len(liars), len(sampled)) else "minority"):
            yield from ((client, train(client, task, False)) for client in liars)
            return
        row = self._row(server, task, sampled, liars) if liars and self.attack.colludes else None
        for client in liars:
            if row is None:
                yield client, self.attack.spoil(train(client, task, self.attack.flips_labels))
            else:
                # The vector that makes the server hold the row.
                held = server.adopt(server.momentum_of(client, at_last_contact=True))
                yield client, (row - task.keep[client] * held) / task.gain

    def _row(self, server: Server, task: Round, sampled: Sequence[int], liars: list[int]) -> Any | None:
        """Ask a colluding attack for the row that the server is to hold."""
        view = AttackView(
            round=task.number,
            n=len(server.clients),
            byzantine=self.byzantine,
            honest=server.inspect(self._shown(server, sampled)),
            majority=is_majority(len(liars), len(sampled)),
            parameters=server.adopt(task.parameters),
            start=server.adopt(self.start),
            lr=server.lr,
            aggregate=lambda row: server.preview(dict.fromkeys(liars, row)),
            generator=self._generator(),
            target=self._last_known(server, self._target),
        )
        return self.attack.row(view)

    @staticmethod
    def _last_known(server: Server, client: int | None) -> Any | None:
        """Return a client's row, (d,); None for nobody, or for one that never took part, whose row is 0."""
        if client is None:
            return None
        row = server.inspect([client])
        return row.row(0) if row.products().any() else None
