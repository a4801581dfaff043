"""Divide and conquer (DnC): rows that stick out along the main direction are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.decision import Combination, average_of
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.rules.spectral import principal
from demoa.aggregation.table import Table
from demoa.core.checks import real_number, require

LEAST = "a number, at least 1"


@dataclass(frozen=True)
class DivideAndConquer(Rule):
    """The average of the rows with the least squared part along the rows' main direction.

    `factor` * f rows, rounded down, are left out. The published rule looks at random subsets of the
    coordinates to keep its decomposition affordable, and intersects what is left over several of them;
    the table holds all coordinates at once, so here one look sees everything, and nothing is drawn.

    One look has a blind spot: a few huge rows fill the main direction, and smaller lies hide behind them. Faulty
    rows of growing sizes can drag this rule where they like; limit norms at the gate (`norm_limit`) or use `caf`.

    Args:
        factor: How many rows to leave out per faulty row.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [99.0]])
    >>> demoa.aggregate(rows, "dnc", f=1).tolist()
    [1.0]

    Reference: Shejwalkar, Houmansadr, NDSS 2021.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        require(real_number("dnc: factor", self.factor, LEAST) >= 1, "dnc: factor", self.factor, LEAST)

    def tolerance(self, rows: int) -> int:
        """Return the largest minority that leaves at least one row."""
        return min(minority(rows), int((rows - 1) / self.factor))

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights on the rows that are left."""
        _, parts = principal(table.gram, np.full(table.rows, 1.0 / table.rows))
        order = np.argsort(parts, kind="stable")
        return average_of(order[: table.rows - int(self.factor * f)], table.rows)
