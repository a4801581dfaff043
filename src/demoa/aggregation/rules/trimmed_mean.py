"""The coordinate-wise trimmed mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from demoa.aggregation.decision import RankMean
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table


@dataclass(frozen=True)
class TrimmedMean(Rule):
    """Per coordinate, the mean of what is left without the f smallest and the f largest values.

    >>> import demoa, numpy as np
    >>> demoa.aggregate(np.array([[0.0], [1.0], [2.0], [6.0], [99.0]]), "trimmed_mean", f=1).tolist()
    [3.0]

    Reference: Yin, Chen, Ramchandran, Bartlett, ICML 2018.
    """

    looks_at_table: ClassVar[bool] = False

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> RankMean:
        """Return the ranks that are left."""
        return RankMean(f, table.rows - f - 1)
