"""MoNNA: the rows nearest to one that is trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.decision import Combination, average_of
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table
from demoa.core.registry import require


@dataclass(frozen=True)
class Monna(Rule):
    """The average of the n - f rows nearest to the pivot, the pivot among them.

    Args:
        pivot: The row of a client that is known to be honest. There is no default: if the pivot lies,
            so does the result.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> demoa.aggregate(rows, demoa.rules.Monna(pivot=0), f=1).tolist()
    [1.0]

    Reference: Farhadkhani, Guerraoui, Gupta, Hoang, Pinot, Stephan, ICML 2023.
    """

    pivot: int

    def __post_init__(self) -> None:
        require(self.pivot >= 0, "monna: pivot", self.pivot, "a row number, from 0")

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights on the nearest rows."""
        require(self.pivot < table.rows, "monna: pivot", self.pivot, f"below the {table.rows} rows")
        order = np.argsort(table.squared_distances[self.pivot], kind="stable")
        return average_of(order[: table.rows - f], table.rows)
