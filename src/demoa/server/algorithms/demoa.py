"""DeMoA, delayed momentum aggregation: the paper's algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.core.checks import share
from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, all_rows


@dataclass(frozen=True)
class Demoa(Algorithm):
    """Momentum rows of absent clients decay by 1 - alpha p and are aggregated with the fresh ones.

        m_i <- (1 - alpha p) m_i + alpha g_i    if client i took part
        m_i <- (1 - alpha p) m_i                otherwise
        x   <- x - lr Agg(m_1, ..., m_n)

    Args:
        alpha: The weight of a fresh gradient.
        p: The probability that a client takes part; `Server.begin_round` takes one per client.
        full_first_round: Whether the first round has alpha = p = 1 and asks everyone, as in the theorem.

    Reference: Otsuka, Takezawa, Yamada, ICML 2026 (Algorithm 1).
    """

    delayed: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset({"alpha", "p"})

    alpha: float = 0.9
    p: float = 0.1
    full_first_round: bool = True

    def __post_init__(self) -> None:
        share("demoa: alpha", self.alpha)
        share("demoa: p", self.p)

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return decay 1 - alpha p and gain alpha; alpha = p = 1 in a full first round."""
        weight = self._alpha(self.alpha, alpha, first)
        if p is None:
            p = 1.0 if first and self.full_first_round else self.p
        return Recursion(decay=1.0 - weight * p, keep=1.0, gain=weight)

    def selection(self, view: RoundView) -> Matrix:
        """Return all rows: the faulty ones stay a minority whoever took part."""
        return all_rows(view)
