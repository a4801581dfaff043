"""MIFA: the latest gradient of every client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, all_rows


@dataclass(frozen=True)
class Mifa(Algorithm):
    """m_i <- g_i if client i took part, unchanged otherwise; all n are aggregated. No momentum.

    With the mean as its rule this is MIFA. DeMoA does not become MIFA at alpha = 1, as the paper has it: see
    docs/paper.md.

    Args:
        full_first_round: Whether the first round asks everyone.

    Reference: Gu, Huang, Zhang, Huang, NeurIPS 2021.
    """

    delayed: ClassVar[bool] = True

    full_first_round: bool = True

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return a recursion that replaces the row."""
        return Recursion(decay=1.0, keep=0.0, gain=1.0)

    def selection(self, view: RoundView) -> Matrix:
        """Return all rows."""
        return all_rows(view)
