"""MoNNA: the rows nearest to one that is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from demoa.aggregation.decision import Combination, average_of
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table
from demoa.core.checks import require, whole_number


@dataclass(frozen=True)
class Monna(Rule):
    """The average of the n - f rows nearest to the pivot, the pivot among them.

    Args:
        pivot: The row of a client that is known to be honest, counted from 0. There is no default: if the pivot
            lies, so does the result.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> demoa.aggregate(rows, demoa.rules.Monna(pivot=0), f=1).tolist()
    [1.0]

    Reference: Farhadkhani, Guerraoui, Gupta, Hoang, Pinot, Stephan, ICML 2023.
    """

    names_a_row: ClassVar[bool] = True

    pivot: int

    def __post_init__(self) -> None:
        whole_number("monna: pivot", self.pivot, least=0)

    def check(self, rows: int, f: int) -> None:
        """Refuse a pivot that is not there."""
        require(self.pivot < rows, "monna: pivot", self.pivot, f"below the {rows} rows")

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights on the nearest rows."""
        order = np.argsort(table.squared_distances[self.pivot], kind="stable")
        return average_of(order[: table.rows - f], table.rows)
