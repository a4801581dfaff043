"""The two algorithms that look only at the clients of the round: FedAvg and FedCM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.registry import require
from demoa.core.types import Floats
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, accepted_rows
from demoa.server.algorithms.demoa import check_alpha


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """x <- x - lr Agg(g_i, i in S_t): the fresh gradients of the round, and no step if there are none.

    Reference: McMahan, Moore, Ramage, Hampson, Arcas, AISTATS 2017.
    """

    delayed: ClassVar[bool] = False

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return a recursion that replaces the row."""
        return Recursion(decay=1.0, keep=0.0, gain=1.0)

    def selection(self, view: RoundView) -> Floats | None:
        """Return the rows of this round."""
        return accepted_rows(view)


@dataclass(frozen=True)
class FedCM(Algorithm):
    """x <- x - lr Agg(m_i, i in S_t) with m_i <- (1 - alpha) m_i + alpha g_i, held while a client is away.

    This is what the paper compares with under that name. The FedCM of its authors mixes in one momentum of
    the server instead.

    Args:
        alpha: The weight of a fresh gradient.
        beta: If given, heavy-ball momentum m_i <- beta m_i + g_i in its place.

    Reference: Xu, Wang, Wang, Yao, 2021.
    """

    delayed: ClassVar[bool] = False

    alpha: float = 0.9
    beta: float | None = None

    def __post_init__(self) -> None:
        check_alpha("fedcm", self.alpha)
        allowed = self.beta is None or 0.0 <= self.beta < 1.0
        require(allowed, "fedcm: beta", self.beta, "from 0 to below 1")

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return the momentum of a client that takes part."""
        if self.beta is not None:
            return Recursion(decay=1.0, keep=self.beta, gain=1.0)
        alpha = self.alpha if alpha is None else alpha
        check_alpha("fedcm", alpha)
        return Recursion(decay=1.0, keep=1.0 - alpha, gain=alpha)

    def selection(self, view: RoundView) -> Floats | None:
        """Return the rows of this round."""
        return accepted_rows(view)
