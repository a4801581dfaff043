"""The mean around the median (MeaMed)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from demoa.aggregation.decision import NearMedian
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table


@dataclass(frozen=True)
class MeanAroundMedian(Rule):
    """Per coordinate, the mean of the n - f values nearest to the median.

    Of two values at the same distance the smaller goes first.

    >>> import demoa
    >>> demoa.aggregate(np.array([[0.0], [1.0], [2.0], [6.0], [99.0]]), "meamed", f=1).tolist()
    [2.25]

    Reference: Xie, Koyejo, Gupta, 2018 (generalized Byzantine-tolerant SGD).
    """

    looks_at_table: ClassVar[bool] = False

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> NearMedian:
        """Return all rows, and how many values to keep."""
        return NearMedian(table.rows - f, np.arange(table.rows))
