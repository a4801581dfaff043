"""The geometric median, known as RFA: the point with the least sum of distances to the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.decision import Combination
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table
from demoa.core.checks import positive, whole_number

MOST_STEPS = 10_000
"""Where `tol` gives up: Weiszfeld's method can be slow when the answer is one of the rows."""


@dataclass(frozen=True)
class GeometricMedian(Rule):
    """Smoothed Weiszfeld steps towards argmin_v sum_i |x_i - v|, from v = 0.

    Each step takes v = sum_i w_i x_i / sum_i w_i with w_i = 1 / max(nu, |x_i - v|), all in the table.

    Args:
        steps: How many steps.
        nu: Distances below this count as nu.
        tol: If given, go on past `steps` until no weight moves by more than tol.

    >>> import demoa
    >>> rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [50.0, 50.0]])
    >>> demoa.aggregate(rows, "geometric_median", f=1).round(3).tolist()
    [0.499, 0.499]

    Reference: Pillutla, Kakade, Harchaoui, IEEE Transactions on Signal Processing 2022.
    """

    steps: int = 8
    nu: float = 0.1
    tol: float | None = None

    def __post_init__(self) -> None:
        whole_number("geometric_median: steps", self.steps, least=1)
        positive("geometric_median: nu", self.nu)
        if self.tol is not None:
            positive("geometric_median: tol", self.tol)

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return the weights after the last step."""
        weights = np.zeros(table.rows + 1)
        steps = 0
        moved = np.inf
        while steps < self.steps or (self.tol is not None and moved > self.tol and steps < MOST_STEPS):
            pull = 1.0 / np.maximum(self.nu, np.sqrt(table.squared_distances_to(weights)))
            previous = weights.copy()
            weights[:-1] = pull / pull.sum()
            moved = float(np.abs(weights - previous).max())
            steps += 1
        return Combination(weights[:-1], notes={"weiszfeld_steps": steps})
