"""What an algorithm is: how rows move, which of them the rule sees, and what the step is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from demoa.core.types import Floats, Matrix


class Recursion(NamedTuple):
    """One round of every row: m_i <- decay m_i, and for a client that took part, keep m_i + gain g_i.

    `decay` is one number, or one per client, (n,).
    """

    decay: float | Floats
    keep: float
    gain: float


class Running(NamedTuple):
    """One round of the row that the server steps along, where it keeps one: g <- keep g + gain (the aggregate)."""

    keep: float
    gain: float


@dataclass(frozen=True)
class RoundView:
    """What is known when all vectors of a round are in.

    Attributes:
        scale: m_i = scale_i * (stored row i), (n,).
        accepted: The clients whose vector was taken, (k,), sorted.
        rows: How many rows the cache has: those of the clients, then the server's own.
        products: Gives the inner products of all stored rows, (rows, rows).
        estimate: Which stored row holds the running estimate, for algorithms that keep one.
        last_lr: The step size of the last step that was made; None if there was none yet.
    """

    scale: Floats
    accepted: NDArray[np.intp]
    rows: int
    products: Callable[[], Floats]
    estimate: int | None
    last_lr: float | None


class Algorithm(ABC):
    """A federated optimizer. Subclasses are frozen dataclasses; their fields are its options."""

    delayed: ClassVar[bool]
    """Whether the rule sees the rows of all clients, so that f holds in every round, or only those of the
    clients that took part, so that f is capped at what the rule can take of so few."""

    takes: ClassVar[frozenset[str]] = frozenset()
    """Which of alpha and p may be given anew each round."""

    looks_at_table: ClassVar[bool] = False
    """Whether the selection asks for inner products."""

    full_first_round: bool = False

    @abstractmethod
    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return how rows move in this round; alpha and p, where given, replace the options."""

    @abstractmethod
    def selection(self, view: RoundView) -> Matrix | None:
        """Return which combinations of the stored rows the rule sees, (m, rows), sparse; None for no step."""

    @property
    def estimate(self) -> Running | None:
        """How the running estimate moves, one more row, that the server steps along; None: along the aggregate."""
        return None

    def _alpha(self, own: float, given: float | None, first: bool) -> float:
        """Return the alpha of this round: the given one, 1 in a full first round, or the algorithm's own."""
        if given is not None:
            return given
        return 1.0 if first and self.full_first_round else own


def all_rows(view: RoundView) -> Matrix:
    """Return the selection of every client's row, at its present scale, (n, rows)."""
    return _selection(np.arange(len(view.scale)), view)


def accepted_rows(view: RoundView) -> Matrix | None:
    """Return the selection of the rows of the clients that took part, (k, rows); None if there are none."""
    return None if len(view.accepted) == 0 else _selection(view.accepted, view)


def _selection(chosen: NDArray[np.intp], view: RoundView) -> Matrix:
    ends = np.arange(len(chosen) + 1)
    return csr_array((view.scale[chosen], chosen, ends), shape=(len(chosen), view.rows))
