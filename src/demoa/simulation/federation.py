"""All parts of a simulated federation, and one round of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from demoa.clients import Worker
from demoa.core.errors import UpdateRejected
from demoa.core.seeding import generator
from demoa.metrics import Heterogeneity
from demoa.sampling import Sampling
from demoa.server.round import Round, RoundReport
from demoa.server.server import Server
from demoa.simulation.adversary import Adversary, is_majority

ROUNDING = 64 * np.finfo(np.float64).eps
"""A square that is this small a part of those that it is the difference of is rounding."""


@dataclass(frozen=True)
class Played:
    """What happened in a round.

    Attributes:
        report: What the server reports; it does not know who lies.
        sampled: The clients that took part.
        byzantine: How many of them were Byzantine.
        error: How far the step's direction was from the mean of the honest rows that it was to be made of: those of
            all honest clients, or of this round's. None if there was no step, or no honest row.
        length: How many times as long as that mean the direction was; None in the same cases.
        byzantine_weight: The Byzantine clients' share of the weights in the step, whether or not they took part; None
            if there was no step, or no weight of whole rows.
        train_loss: The mean loss of the honest clients that took part, at the parameters that they were sent. None if
            there were none.
    """

    report: RoundReport
    sampled: tuple[int, ...]
    byzantine: int
    error: float | None
    length: float | None
    byzantine_weight: float | None
    train_loss: float | None

    @property
    def majority(self) -> bool:
        """Whether strictly more Byzantine than honest clients took part."""
        return is_majority(self.byzantine, len(self.sampled))


def drawn(sampling: Sampling, n: int, seed: int, number: int) -> list[int]:
    """Return whom the sampling of a run draws in a round."""
    return sampling.clients(number, n, generator(seed, "sampling", number))


def majority_rounds(sampling: Sampling, n: int, byzantine: int, seed: int, rounds: int) -> list[int]:
    """Return the rounds of a run in which most of those that are drawn are Byzantine.

    >>> from demoa.sampling import Bernoulli
    >>> majority_rounds(Bernoulli(p=0.1), n=25, byzantine=5, seed=0, rounds=20)
    [3, 9, 19]
    """
    found = []
    for number in range(1, rounds + 1):
        sampled = drawn(sampling, n, seed, number)
        if is_majority(sum(client < byzantine for client in sampled), len(sampled)):
            found.append(number)
    return found


@dataclass(frozen=True)
class Federation:
    """A server, its clients, and the adversary.

    Attributes:
        server: Keeps the rows.
        worker: Trains, for all clients.
        sampling: Says who takes part.
        adversary: Lies.
        sampling_seed: What the sampling draws from.
    """

    server: Server
    worker: Worker
    sampling: Sampling
    adversary: Adversary
    sampling_seed: int

    def play(self) -> Played:
        """Play the next round: ask, train, lie, aggregate."""
        number, n = self.server.round + 1, len(self.server.clients)
        sampled = drawn(self.sampling, n, self.sampling_seed, number)
        if number == 1 and self.server.algorithm.full_first_round:
            sampled = list(range(n))
            task = self.server.begin_round()
        else:
            takes_p = "p" in self.server.algorithm.takes
            task = self.server.begin_round(sampled, p=self.sampling.probability(number, n) if takes_p else None)
        liars = self.adversary.liars(sampled)
        losses = []
        for client in sampled:
            if client not in liars:
                update = self.worker.update(client, number, task.parameters)
                losses.append(update.loss)
                self._submit(client, update.vector, number)
        for client, lie in self.adversary.lies(self.server, task, sampled, self._train):
            self._submit(client, lie, number)
        report = self.server.end_round()
        error, length = self._beside_honest(report, sampled)
        return Played(
            report=report,
            sampled=tuple(sampled),
            byzantine=len(liars),
            error=error,
            length=length,
            byzantine_weight=self._byzantine_weight(report),
            train_loss=float(np.mean(losses)) if losses else None,
        )

    def _submit(self, client: int, vector: Any, number: int) -> None:
        """Send a vector; one that the gate finds infinite or too long counts as none, honest or not."""
        try:
            self.server.submit(client, vector, round=number)
        except UpdateRejected as refusal:
            if refusal.reason not in ("not_finite", "norm"):
                raise

    def _beside_honest(self, report: RoundReport, sampled: list[int]) -> tuple[float | None, float | None]:
        """Return how far a step's direction is from the honest mean, and how many times as long."""
        honest = self.adversary.honest_aggregated(self.server, sampled)
        if report.direction is None or not honest:
            return None, None
        rows = self.server.inspect(honest)
        products = rows.products()  # also where no rule asks: a mean of rows of which none is new then finds the table
        rounding, mean_square = ROUNDING * products.diagonal().max(), products.mean()
        if report.alignment is None or mean_square <= rounding:  # rows that cancel have no mean that a table tells
            return rows.distance_from_mean(report.direction), rows.length_beside_mean(report.direction)
        square = report.alignment.square
        gap = square - 2 * report.alignment.products[honest].mean() + mean_square
        # What is left of equal vectors is rounding, and not the same on every processor.
        return float(np.sqrt(gap)) if gap > rounding else 0.0, float(np.sqrt(square / mean_square))

    def _byzantine_weight(self, report: RoundReport) -> float | None:
        if report.weights is None or not report.weights.any():
            return None
        return float(report.weights[: self.adversary.byzantine].sum() / report.weights.sum())

    def _train(self, client: int, task: Round, flip_labels: bool) -> torch.Tensor:
        """Return what a client finds in a round, on labels that may be turned around."""
        return self.worker.update(client, task.number, task.parameters, flip_labels=flip_labels).vector

    def heterogeneity(self) -> dict[str, float]:
        """Return estimates of how far honest clients differ at the present parameters."""
        found = Heterogeneity()
        for client in range(self.adversary.byzantine, len(self.server.clients)):
            found.add(*self.worker.independent_gradients(client, self.server.round, self.server.parameters))
        return found.estimates()
