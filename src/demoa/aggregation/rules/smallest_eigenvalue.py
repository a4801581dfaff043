"""SMEA: the group of n - f rows with the smallest maximum eigenvalue."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np

from demoa.aggregation.decision import Combination, average_of
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table
from demoa.core.errors import ConfigError

MOST_GROUPS = 2_000_000
"""How many groups are tried before the rule refuses: about a minute of work."""

BATCH = 4096


@dataclass(frozen=True)
class SmallestEigenvalue(Rule):
    """The average of the n - f rows whose covariance has the smallest top eigenvalue.

    All n choose f groups are tried: 53,130 for n = 25, f = 5. Of several such groups the first in order
    is taken.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> demoa.aggregate(rows, "smea", f=1).tolist()
    [1.0]

    Reference: Allouah, Guerraoui, Gupta, Pinot, Stephan, ICML 2023.
    """

    def check(self, rows: int, f: int) -> None:
        """Refuse more groups than can be tried."""
        if comb(rows, f) > MOST_GROUPS:
            raise ConfigError(
                f"smea tries all groups of {rows - f} out of {rows} rows: {comb(rows, f):,} of them, "
                f"more than {MOST_GROUPS:,}; use caf, which scales, or fewer rows (bucketing)"
            )

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights on the best group."""
        size = table.rows - f
        groups = combinations(range(table.rows), size)
        least, best = np.inf, np.arange(size)
        while batch := list(islice(groups, BATCH)):
            index = np.array(batch)
            blocks = table.gram[index[:, :, None], index[:, None, :]]
            blocks = blocks - blocks.mean(axis=1, keepdims=True)
            blocks = blocks - blocks.mean(axis=2, keepdims=True)
            tops = np.linalg.eigvalsh(blocks)[:, -1]
            if tops.min() < least:
                least, best = float(tops.min()), index[int(np.argmin(tops))]
        return average_of(best, table.rows)
