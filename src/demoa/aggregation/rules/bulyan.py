"""Bulyan: rows chosen by Krum, then averaged around their median."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.decision import NearMedian
from demoa.aggregation.rules.krum import scores
from demoa.aggregation.rules.rule import Rule
from demoa.aggregation.table import Table
from demoa.core.types import Floats


@dataclass(frozen=True)
class Bulyan(Rule):
    """Choose n - 2 f rows by Krum, one after the other, then per coordinate average the n - 4 f values
    nearest to their median. Needs n >= 4 f + 3.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [99.0]])
    >>> demoa.aggregate(rows, "bulyan", f=1).tolist()
    [2.0]

    Reference: El Mhamdi, Guerraoui, Rouault, ICML 2018.
    """

    def tolerance(self, rows: int) -> int:
        """Return the largest f with rows >= 4 f + 3."""
        return max(0, (rows - 3) // 4)

    def decide(self, table: Table, f: int) -> NearMedian:
        """Return the chosen rows, and how many values to keep."""
        chosen = chosen_by_krum(table.squared_distances, f, table.rows - 2 * f)
        return NearMedian(table.rows - 4 * f, chosen)


def chosen_by_krum(squared_distances: Floats, f: int, count: int) -> NDArray[np.intp]:
    """Return `count` rows, each the Krum choice among those not chosen before, (count,)."""
    left = np.arange(len(squared_distances))
    chosen = []
    for _ in range(count):
        pick = int(np.argmin(scores(squared_distances[np.ix_(left, left)], f)))
        chosen.append(left[pick])
        left = np.delete(left, pick)
    return np.array(chosen, np.intp)
