"""All parts of a simulated federation, and one round of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from demoa.attacks import Attack, AttackView
from demoa.clients import Worker
from demoa.core.errors import UpdateRejected
from demoa.core.seeding import generator
from demoa.metrics import Heterogeneity
from demoa.sampling import Sampling
from demoa.server.round import Round, RoundReport
from demoa.server.server import Server


@dataclass(frozen=True)
class Played:
    """What happened in a round.

    Attributes:
        report: What the server reports; it does not know who lies.
        sampled: The clients that took part.
        byzantine: How many of them were Byzantine.
        error: How far the step's direction was from the mean of the honest rows that it was to be made of: those of
            all honest clients, or of this round's. None if there was no step, or no honest row.
        train_loss: The mean loss of the honest clients that took part, at the parameters that they were sent. None if
            there were none.
    """

    report: RoundReport
    sampled: tuple[int, ...]
    byzantine: int
    error: float | None
    train_loss: float | None

    @property
    def majority(self) -> bool:
        """Whether strictly more Byzantine than honest clients took part."""
        return self.byzantine > len(self.sampled) - self.byzantine


@dataclass(frozen=True)
class Federation:
    """A server, its clients, and the adversary.

    Clients 0 to byzantine - 1 belong to the adversary; the server is never told.

    Attributes:
        server: Keeps the rows.
        worker: Trains, for all clients.
        sampling: Says who takes part.
        attack: How the adversary lies.
        byzantine: How many clients are the adversary's.
        start: The parameters before the first round, (d,).
        sampling_seed: What the sampling draws from.
        attack_seed: What the attack draws from.
    """

    server: Server
    worker: Worker
    sampling: Sampling
    attack: Attack
    byzantine: int
    start: torch.Tensor
    sampling_seed: int
    attack_seed: int

    def play(self) -> Played:
        """Play the next round: ask, train, lie, aggregate."""
        number, n = self.server.round + 1, len(self.server.clients)
        sampled = self.sampling.clients(number, n, generator(self.sampling_seed, "sampling", number))
        if number == 1 and self.server.algorithm.full_first_round:
            sampled = list(range(n))
            task = self.server.begin_round()
        else:
            takes_p = "p" in self.server.algorithm.takes
            task = self.server.begin_round(sampled, p=self.sampling.probability(number, n) if takes_p else None)
        liars = [client for client in sampled if client < self.byzantine]
        losses = []
        for client in sampled:
            if client >= self.byzantine:
                update = self.worker.update(client, number, task.parameters)
                losses.append(update.loss)
                self._submit(client, update.vector, number)
        row = self._chosen_row(task, sampled, liars) if liars and self.attack.colludes else None
        for client in liars:
            self._submit(client, self._lie(client, task, row), number)
        report = self.server.end_round()
        train_loss = float(np.mean(losses)) if losses else None
        return Played(report, tuple(sampled), len(liars), self._error(report, sampled), train_loss)

    def _submit(self, client: int, vector: Any, number: int) -> None:
        """Send a vector; one that the gate finds infinite or too long counts as none, honest or not."""
        try:
            self.server.submit(client, vector, round=number)
        except UpdateRejected as refusal:
            if refusal.reason not in ("not_finite", "norm"):
                raise

    def _error(self, report: RoundReport, sampled: list[int]) -> float | None:
        honest = self._honest_seen(sampled)
        if report.direction is None or not honest:
            return None
        rows = self.server.inspect(honest)
        if report.alignment is None:
            return rows.distance_from_mean(report.direction)
        square = report.alignment.square - 2 * report.alignment.products[honest].mean() + rows.products().mean()
        return float(np.sqrt(max(0.0, square)))

    def _honest_seen(self, sampled: list[int]) -> list[int]:
        """Return the honest clients whose rows the rule sees."""
        seen = range(len(self.server.clients)) if self.server.algorithm.delayed else sampled
        return [client for client in seen if client >= self.byzantine]

    def heterogeneity(self) -> dict[str, float]:
        """Return estimates of how far honest clients differ at the present parameters."""
        found = Heterogeneity()
        for client in range(self.byzantine, len(self.server.clients)):
            found.add(*self.worker.independent_gradients(client, self.server.round, self.server.parameters))
        return found.estimates()

    def _chosen_row(self, task: Round, sampled: list[int], liars: list[int]) -> Any | None:
        """Ask a colluding attack for the row that the server is to hold."""
        honest = len(sampled) - len(liars)
        seen = self._honest_seen(sampled) or range(self.byzantine, len(self.server.clients))
        # Mimic looks along the same direction in every round, so its stream does not depend on the round.
        stream = generator(self.attack_seed, "attack", type(self.attack).__name__)
        adopt = self.server.adopt
        view = AttackView(
            round=task.number,
            n=len(self.server.clients),
            byzantine=self.byzantine,
            honest=self.server.inspect(seen),
            majority=len(liars) > honest,
            parameters=adopt(task.parameters),
            start=adopt(self.start),
            lr=self.server.lr,
            aggregate=lambda row: self.server.preview(dict.fromkeys(liars, row)),
            generator=stream,
        )
        return self.attack.row(view)

    def _lie(self, client: int, task: Round, row: Any | None) -> Any:
        """Return the vector that makes the server hold the chosen row, or a spoilt honest one."""
        if row is None:
            flips = self.attack.flips_labels
            honest = self.worker.update(client, task.number, task.parameters, flip_labels=flips)
            return self.attack.spoil(honest.vector)
        held = self.server.adopt(self.server.momentum_of(client, at_last_contact=True))
        return (row - task.keep[client] * held) / task.gain
