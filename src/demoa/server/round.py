"""A round as the caller sees it before and after, and as the server holds it in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from demoa.core.types import Floats

ClientId: TypeAlias = str | int
"""How a client is called: what JSON can hold, and so what a saved state can."""


@dataclass(frozen=True)
class Round:
    """What the caller passes on to the clients of a round.

    Attributes:
        number: Counts from 1; a client sends it back with its vector.
        parameters: What the clients differentiate at, (d,).
        asked: Who is to answer.
        keep: For clients that keep their own momentum: m <- keep[client] m + gain g.
        gain: See keep.
    """

    number: int
    parameters: Any
    asked: tuple[ClientId, ...]
    keep: Mapping[ClientId, float]
    gain: float


@dataclass
class OpenRound:
    """A round in progress: who was asked, and what has come of it so far."""

    number: int
    asked: frozenset[ClientId]
    keep: Floats
    gain: float
    lr: float
    accepted: list[ClientId] = field(default_factory=list)
    rejected: dict[ClientId, str] = field(default_factory=dict)

    def refuse(self, client: ClientId, reason: str) -> None:
        """Note that a client's vector was refused, if it was asked and has no other in this round."""
        if client in self.asked and client not in self.accepted:
            self.rejected[client] = reason


@dataclass(frozen=True)
class Alignment:
    """How a step's direction stands to the momentum of the clients.

    Attributes:
        square: |direction|^2.
        products: <direction, m_i>, (n,), in roster order.
    """

    square: float
    products: Floats


@dataclass(frozen=True)
class RoundReport:
    """What a round came to.

    Attributes:
        number: The round.
        read_parameters: Gives the new parameters; `parameters` has them.
        direction: What they moved along, (d,): lr times it was subtracted. None if there was no step.
        alignment: How that stands to the clients' momentum; None if there was no step, or where it is not known
            without a pass over all rows.
        accepted: The clients whose vector was taken, in order of arrival.
        missing: The clients that were asked and whose vector was not taken.
        rejected: Why, for those of them that sent one.
        f: The number of faulty rows that the rule stood; below the server's own f where an algorithm
            that sees only the round's clients had too few of them. None if there was no step.
        weights: Each client's weight in the aggregate, (n,), in roster order; None if there was no step, or
            where a coordinate-wise rule gives each coordinate weights of its own.
        staleness: Rounds since each client's vector was last taken, (n,): 0 for this round, -1 for never.
        notes: Figures that the rule found worth recording.
    """

    number: int
    read_parameters: Callable[[], Any] = field(repr=False, compare=False)
    direction: Any | None
    alignment: Alignment | None
    accepted: tuple[ClientId, ...]
    missing: tuple[ClientId, ...]
    rejected: Mapping[ClientId, str]
    f: int | None
    weights: Floats | None
    staleness: NDArray[np.int64]
    notes: Mapping[str, float]

    @cached_property
    def parameters(self) -> Any:
        """The new parameters, (d,), in the caller's library: a read-only array, or a tensor of its own."""
        return self.read_parameters()
