"""FedAvg: the gradients of the clients that took part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, accepted_rows


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """x <- x - lr Agg(g_i, i in S_t): the fresh gradients of the round, and no step if there are none.

    Reference: McMahan, Moore, Ramage, Hampson, Arcas, AISTATS 2017.
    """

    delayed: ClassVar[bool] = False

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return a recursion that replaces the row."""
        return Recursion(decay=1.0, keep=0.0, gain=1.0)

    def selection(self, view: RoundView) -> Matrix | None:
        """Return the rows of this round."""
        return accepted_rows(view)
