"""ALIE and IPM with the factor that hurts the present server most, found by trying."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.checks import require


@dataclass(frozen=True)
class LineSearch(RowAttack):
    """The row along a line that moves the server's aggregate farthest from the mean of the honest rows.

    Args:
        factors: Which multiples are tried.

    Reference: Farhadkhani, Guerraoui, Gupta, Pinot, Stephan, ICML 2022 (linear search over the attack factor).
    """

    factors: tuple[float, ...] = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)

    def __post_init__(self) -> None:
        require(len(self.factors) > 0, "factors", self.factors, "at least one number")

    def row(self, view: AttackView) -> Any:
        """Try all factors and return the worst row."""
        mean, line = self.line(view)
        rows = [mean + factor * line for factor in self.factors]
        harms = [float(((view.aggregate(row) - mean) ** 2).sum()) for row in rows]
        return rows[harms.index(max(harms))]

    @abstractmethod
    def line(self, view: AttackView) -> tuple[Any, Any]:
        """Return the mean of the honest rows and the direction of the line, (d,) each."""


@dataclass(frozen=True)
class AlieSearch(LineSearch):
    """mean - z std with the z that moves the aggregate most."""

    def line(self, view: AttackView) -> tuple[Any, Any]:
        """Return the mean, and minus the deviation."""
        mean, deviation = view.honest.mean_and_deviation()
        return mean, -deviation


@dataclass(frozen=True)
class IpmSearch(LineSearch):
    """(1 - z) mean with the z that moves the aggregate most."""

    def line(self, view: AttackView) -> tuple[Any, Any]:
        """Return the mean, and its negative."""
        mean = view.honest.mean()
        return mean, -mean
