"""The plain average, for comparison: one faulty row moves it anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from demoa.aggregation.decision import Combination
from demoa.aggregation.rules.rule import Rule
from demoa.aggregation.table import Table


@dataclass(frozen=True)
class Mean(Rule):
    """The average of all rows: sum_i x_i / n. It tolerates no faulty row, so f must be 0.

    >>> import demoa
    >>> demoa.aggregate(np.array([[1.0, 2.0], [3.0, 6.0]]), "mean", f=0).tolist()
    [2.0, 4.0]
    """

    looks_at_table: ClassVar[bool] = False

    def tolerance(self, rows: int) -> int:
        """Return 0: there is no protection."""
        return 0

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights."""
        return Combination(np.full(table.rows, 1.0 / table.rows))
