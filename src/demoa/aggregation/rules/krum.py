"""Krum and Multi-Krum: the rows that lie closest to their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.decision import Combination, average_of
from demoa.aggregation.kernels.neighbours import nearest_sums
from demoa.aggregation.rules.rule import Rule
from demoa.aggregation.table import Table
from demoa.core.checks import whole_number
from demoa.core.types import Floats


@dataclass(frozen=True)
class Krum(Rule):
    """The row with the least sum of squared distances to its n - f - 2 nearest other rows.

    Needs n >= 2 f + 3. Of several such rows the first is taken. With f = 0 there is nothing to defend
    against, and one or two rows are accepted as well.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0], [99.0]])
    >>> demoa.aggregate(rows, "krum", f=1).tolist()
    [1.0]

    Reference: Blanchard, El Mhamdi, Guerraoui, Stainer, NeurIPS 2017.
    """

    def tolerance(self, rows: int) -> int:
        """Return the largest f with rows >= 2 f + 3."""
        return max(0, (rows - 3) // 2)

    def decide(self, table: Table, f: int) -> Combination:
        """Return weight 1 on the row with the least score."""
        return average_of([table.nearest(max(1, table.rows - f - 2))], table.rows)


@dataclass(frozen=True)
class MultiKrum(Rule):
    """The average of the `count` rows with the least Krum scores.

    Args:
        count: How many rows to average; None means n - f, all that can be honest, and more are never taken.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0], [99.0]])
    >>> demoa.aggregate(rows, demoa.rules.MultiKrum(count=2), f=1).tolist()
    [1.5]

    Reference: Blanchard, El Mhamdi, Guerraoui, Stainer, NeurIPS 2017.
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            whole_number("multi_krum: count", self.count, least=1)

    def tolerance(self, rows: int) -> int:
        """Return the largest f with rows >= 2 f + 3."""
        return max(0, (rows - 3) // 2)

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights on the rows with the least scores."""
        most = table.rows - f
        count = most if self.count is None else min(self.count, most)
        order = np.argsort(scores(table.squared_distances, f), kind="stable")
        return average_of(order[:count], table.rows)


def scores(squared_distances: Floats, f: int) -> Floats:
    """Return each row's sum of squared distances to its n - f - 2 nearest other rows, (n,)."""
    rows = len(squared_distances)
    if rows == 1:
        return np.zeros(1)
    return nearest_sums(squared_distances, max(1, rows - f - 2))
