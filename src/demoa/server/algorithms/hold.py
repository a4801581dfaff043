"""The two designs that DeMoA is compared with: rows of absent clients are held as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.types import Floats
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, all_rows
from demoa.server.algorithms.demoa import check_alpha


@dataclass(frozen=True)
class Hold(Algorithm):
    """m_i <- (1 - alpha) m_i + alpha g_i if client i took part, unchanged otherwise; all n are aggregated.

    Args:
        alpha: The weight of a fresh gradient.
        full_first_round: Whether the first round has alpha = 1 and asks everyone.
    """

    delayed: ClassVar[bool] = True

    alpha: float = 0.9
    full_first_round: bool = True

    def __post_init__(self) -> None:
        check_alpha("hold", self.alpha)

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return keep 1 - alpha and gain alpha; alpha = 1 in a full first round."""
        full = first and self.full_first_round
        alpha = alpha if alpha is not None else 1.0 if full else self.alpha
        check_alpha("hold", alpha)
        return Recursion(decay=1.0, keep=1.0 - alpha, gain=alpha)

    def selection(self, view: RoundView) -> Floats:
        """Return all rows."""
        return all_rows(view)


@dataclass(frozen=True)
class Mifa(Algorithm):
    """m_i <- g_i if client i took part, unchanged otherwise; all n are aggregated. No momentum.

    With the mean as its rule this is MIFA. The paper says that DeMoA becomes MIFA at alpha = 1; it becomes
    m_i <- (1 - p) m_i + g_i, which is not the same.

    Args:
        full_first_round: Whether the first round asks everyone.

    Reference: Gu, Huang, Zhang, Huang, NeurIPS 2021.
    """

    delayed: ClassVar[bool] = True

    full_first_round: bool = True

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return a recursion that replaces the row."""
        return Recursion(decay=1.0, keep=0.0, gain=1.0)

    def selection(self, view: RoundView) -> Floats:
        """Return all rows."""
        return all_rows(view)
