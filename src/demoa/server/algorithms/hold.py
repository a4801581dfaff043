"""Hold: the design that DeMoA is compared with, in which rows of absent clients stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.checks import share
from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, all_rows


@dataclass(frozen=True)
class Hold(Algorithm):
    """m_i <- (1 - alpha) m_i + alpha g_i if client i took part, unchanged otherwise; all n are aggregated.

    Args:
        alpha: The weight of a fresh gradient.
        full_first_round: Whether the first round has alpha = 1 and asks everyone.
    """

    delayed: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"alpha"})

    alpha: float = 0.9
    full_first_round: bool = True

    def __post_init__(self) -> None:
        share("hold: alpha", self.alpha)

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return keep 1 - alpha and gain alpha; alpha = 1 in a full first round."""
        weight = self._alpha(self.alpha, alpha, first)
        return Recursion(decay=1.0, keep=1.0 - weight, gain=weight)

    def selection(self, view: RoundView) -> Matrix:
        """Return all rows."""
        return all_rows(view)
