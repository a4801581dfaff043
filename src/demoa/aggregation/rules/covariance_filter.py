"""The covariance-bound agnostic filter (CAF): rows along the widest direction lose weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.decision import Combination
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.rules.spectral import principal
from demoa.aggregation.table import Table


@dataclass(frozen=True)
class CovarianceFilter(Rule):
    """The weighted mean with the least top variance met while outliers are filtered out.

    Weights c_i start at 1. While sum_i c_i > n - 2 f: take the mean and the direction of largest variance
    of the weighted rows, and multiply c_i by 1 - tau_i / max_j tau_j, with tau_i the squared part of row
    i along that direction. The direction is exact here (an eigenvector of the table).

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [99.0]])
    >>> demoa.aggregate(rows, "caf", f=1).round(2).tolist()
    [1.01]

    Reference: Allouah, Guerraoui, Stephan, ICML 2025.
    """

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return the weights of the mean with the least top variance."""
        remaining = np.ones(table.rows)
        best = remaining / table.rows
        least = np.inf
        steps = 0
        while f > 0 and remaining.sum() > table.rows - 2 * f:
            weights = remaining / remaining.sum()
            variance, parts = principal(table.gram, weights)
            if variance < least:
                least, best = variance, weights
            steps += 1
            largest = parts[remaining > 0.0].max()
            if largest == 0.0:
                break
            remaining = remaining * np.clip(1.0 - parts / largest, 0.0, 1.0)
        return Combination(best, notes={"filter_steps": steps})
