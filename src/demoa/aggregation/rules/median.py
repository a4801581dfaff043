"""The coordinate-wise median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.aggregation.decision import RankMean
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table


@dataclass(frozen=True)
class Median(Rule):
    """Per coordinate, the middle value; of an even number of rows, the mean of the two middle ones.

    >>> import demoa, numpy as np
    >>> demoa.aggregate(np.array([[1.0, 9.0], [2.0, 7.0], [50.0, 8.0]]), "median", f=1).tolist()
    [2.0, 8.0]

    Reference: Yin, Chen, Ramchandran, Bartlett, ICML 2018.
    """

    looks_at_table: ClassVar[bool] = False

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> RankMean:
        """Return the middle rank or ranks."""
        return RankMean((table.rows - 1) // 2, table.rows // 2)
