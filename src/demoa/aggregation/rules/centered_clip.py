"""Centered clipping: rows may pull the previous aggregate only so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from demoa.aggregation.decision import Combination
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table
from demoa.core.checks import positive, whole_number


@dataclass(frozen=True)
class CenteredClip(Rule):
    """v <- v + (1/n) sum_i (x_i - v) min(1, tau / |x_i - v|), `steps` times, from the previous aggregate.

    All iterates are combinations of the rows and the first v, so the steps happen in the table.

    Args:
        tau: How far one row may pull.
        steps: How many steps.

    >>> import demoa
    >>> rows = np.array([[1.0], [2.0], [3.0], [1000.0]])
    >>> demoa.aggregate(rows, demoa.rules.CenteredClip(tau=2.0, steps=1), f=1).tolist()
    [1.75]

    Reference: Karimireddy, He, Jaggi, ICML 2021.
    """

    uses_centre: ClassVar[bool] = True
    looks_at_table: ClassVar[bool] = False  # of many rows, only at those that may be clipped

    tau: float = 10.0
    steps: int = 3

    def __post_init__(self) -> None:
        positive("centered_clip: tau", self.tau)
        whole_number("centered_clip: steps", self.steps, least=1)

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return the weights of the rows and of the first v after the last step."""
        weights = np.zeros(table.rows + 1)
        weights[-1] = 1.0
        shares = np.ones(table.rows)
        for _ in range(self.steps):
            distances = table.distances_beyond(weights, self.tau)
            shares = self.tau / np.maximum(self.tau, distances)
            weights *= 1.0 - shares.mean()
            weights[:-1] += shares / table.rows
        return Combination(weights[:-1], float(weights[-1]), {"clipped": float((shares < 1.0).mean())})
