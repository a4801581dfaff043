"""A rule and an attack of one's own; own_parts.toml sweeps over them by their import paths."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.aggregation.decision import Combination
from demoa.aggregation.rules import Rule
from demoa.aggregation.table import Table
from demoa.attacks import Attack, AttackView


@dataclass(frozen=True)
class DropLongest(Rule):
    """The mean of what is left when the f longest rows are dropped."""

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return (rows - 1) // 2

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights for the rows that are kept."""
        weights = np.zeros(table.rows)
        weights[np.argsort(table.squared_norms, kind="stable")[: table.rows - f]] = 1 / (table.rows - f)
        return Combination(weights)


@dataclass(frozen=True)
class Reverse(Attack):
    """The honest mean, turned around."""

    strength: float = 0.5

    def row(self, view: AttackView) -> Any:
        """Return the row that all liars of the round have."""
        return -self.strength * view.honest.mean()
