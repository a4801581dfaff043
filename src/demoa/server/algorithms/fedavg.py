"""FedAvg: the gradients of the clients that took part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.checks import real_number, require
from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, Running, accepted_rows

BETA, BELOW_1 = "fedavg: server_momentum", "from 0 to below 1"


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """x <- x - lr Agg(g_i, i in S_t): the fresh gradients of the round, and no step if there are none.

    Args:
        server_momentum: If given, beta of momentum on the server: x <- x - lr v with
            v <- beta v + (1 - beta) Agg(g_i, i in S_t).

    Reference: McMahan, Moore, Ramage, Hampson, Arcas, AISTATS 2017; with momentum, Hsu, Qi, Brown, 2019.
    """

    delayed: ClassVar[bool] = False

    server_momentum: float | None = None

    def __post_init__(self) -> None:
        beta = self.server_momentum
        if beta is not None:
            require(0.0 <= real_number(BETA, beta, BELOW_1) < 1.0, BETA, beta, BELOW_1)

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return a recursion that replaces the row."""
        return Recursion(decay=1.0, keep=0.0, gain=1.0)

    @property
    def estimate(self) -> Running | None:
        """Return the momentum of the server."""
        beta = self.server_momentum
        return None if beta is None else Running(keep=beta, gain=1.0 - beta)

    def selection(self, view: RoundView) -> Matrix | None:
        """Return the rows of this round."""
        return accepted_rows(view)
