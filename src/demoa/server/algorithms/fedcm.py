"""FedCM: the momentum of the clients that took part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.checks import real_number, require, share
from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, accepted_rows

BETA = "from 0 to below 1"


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
    takes: ClassVar[frozenset[str]] = frozenset({"alpha"})

    alpha: float = 0.9
    beta: float | None = None

    def __post_init__(self) -> None:
        share("fedcm: alpha", self.alpha)
        if self.beta is not None:
            require(0.0 <= real_number("fedcm: beta", self.beta, BETA) < 1.0, "fedcm: beta", self.beta, BETA)

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return the momentum of a client that takes part."""
        if self.beta is not None:
            return Recursion(decay=1.0, keep=self.beta, gain=1.0)
        weight = self._alpha(self.alpha, alpha, first)
        return Recursion(decay=1.0, keep=1.0 - weight, gain=weight)

    def selection(self, view: RoundView) -> Matrix | None:
        """Return the rows of this round."""
        return accepted_rows(view)
