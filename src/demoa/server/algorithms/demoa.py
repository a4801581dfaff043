"""DeMoA, delayed momentum aggregation: the paper's algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from demoa.core.registry import require
from demoa.core.types import Floats
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, all_rows


@dataclass(frozen=True)
class Demoa(Algorithm):
    """Momentum rows of absent clients decay by 1 - alpha p and are aggregated with the fresh ones.

        m_i <- (1 - alpha p) m_i + alpha g_i    if client i took part
        m_i <- (1 - alpha p) m_i                otherwise
        x   <- x - lr Agg(m_1, ..., m_n)

    Args:
        alpha: The weight of a fresh gradient.
        p: The probability that a client takes part, one for all or one each.
        full_first_round: Whether the first round has alpha = p = 1 and asks everyone, as in the theorem.

    Reference: Otsuka, Takezawa, Yamada, ICML 2026 (Algorithm 1).
    """

    delayed: ClassVar[bool] = True

    alpha: float = 0.9
    p: float = 0.1
    full_first_round: bool = True

    def __post_init__(self) -> None:
        check_alpha("demoa", self.alpha)
        check_p("demoa", self.p)

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return decay 1 - alpha p and gain alpha; alpha = p = 1 in a full first round."""
        full = first and self.full_first_round
        alpha = alpha if alpha is not None else 1.0 if full else self.alpha
        p = p if p is not None else 1.0 if full else self.p
        check_alpha("demoa", alpha)
        check_p("demoa", p)
        return Recursion(decay=1.0 - alpha * p, keep=1.0, gain=alpha)

    def selection(self, view: RoundView) -> Floats:
        """Return all rows: the faulty ones stay a minority whoever took part."""
        return all_rows(view)


def check_alpha(name: str, alpha: float) -> None:
    """Raise ConfigError unless 0 < alpha <= 1."""
    require(0.0 < alpha <= 1.0, f"{name}: alpha", alpha, "above 0 and at most 1")


def check_p(name: str, p: float | Floats) -> None:
    """Raise ConfigError unless every probability lies in (0, 1]."""
    require(bool(np.all((np.asarray(p) > 0) & (np.asarray(p) <= 1))), f"{name}: p", p, "above 0 and at most 1")
