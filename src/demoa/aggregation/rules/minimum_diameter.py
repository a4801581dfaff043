"""Minimum-diameter averaging (MDA): the tightest group of n - f rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.decision import Combination, average_of
from demoa.aggregation.rules.rule import Rule, minority
from demoa.aggregation.table import Table
from demoa.core.checks import require
from demoa.core.types import Floats

MOST_F = 16
"""Up to here the worst case takes seconds."""


@dataclass(frozen=True)
class MinimumDiameter(Rule):
    """The average of the n - f rows whose largest pairwise distance is least.

    Several groups can share the least diameter, since one pair of rows decides it: of those that leave out a
    minimal set of rows, the one with the least sum of squared distances is taken.

    Trying all groups would take n choose f steps. Here a diameter t is possible if the pairs farther
    apart than t can be cut by leaving out f rows, a vertex cover, found in at most 2^f steps.

    >>> import demoa
    >>> rows = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> demoa.aggregate(rows, "mda", f=1).tolist()
    [1.0]

    Reference: El Mhamdi, Guerraoui, Guirguis, Hoang, Rouault, PODC 2020; Rousseeuw 1985.
    """

    def check(self, rows: int, f: int) -> None:
        """Refuse a search that faulty rows could make endless."""
        require(f <= MOST_F, "mda: f", f, f"at most {MOST_F}, as it may search 2^f groups; caf and nnm scale")

    def tolerance(self, rows: int) -> int:
        """Return the largest minority."""
        return minority(rows)

    def decide(self, table: Table, f: int) -> Combination:
        """Return equal weights on the tightest group."""
        distances = table.squared_distances
        candidates = np.unique(distances)
        low, high = 0, len(candidates) - 1
        while low < high:
            middle = (low + high) // 2
            if next(covers(distances > candidates[middle], f), None) is None:
                low = middle + 1
            else:
                high = middle
        groups = (_kept(distances, cover, f) for cover in covers(distances > candidates[low], f))
        return average_of(min(groups, key=lambda group: _spread(distances, group)), table.rows)


def covers(conflict: NDArray[np.bool_], budget: int) -> Iterator[frozenset[int]]:
    """Yield sets of at most `budget` rows that touch every conflict, all minimal ones among them."""
    degree = conflict.sum(axis=1)
    worst = int(np.argmax(degree))
    if degree[worst] == 0:
        yield frozenset()
        return
    if budget == 0:
        return
    # Leave out the row with most conflicts, or else all rows that it conflicts with.
    neighbours = frozenset(np.flatnonzero(conflict[worst]).tolist())
    choices = [frozenset([worst])]
    if len(neighbours) <= budget:
        choices.append(neighbours)
    for choice in choices:
        rest = conflict.copy()
        rest[list(choice), :] = False
        rest[:, list(choice)] = False
        for cover in covers(rest, budget - len(choice)):
            yield cover | choice


def _kept(distances: Floats, cover: frozenset[int], f: int) -> list[int]:
    """Return the rows outside the cover, less the most distant ones while more than f must go."""
    kept = [row for row in range(len(distances)) if row not in cover]
    while len(kept) > len(distances) - f:
        kept.pop(int(np.argmax(distances[np.ix_(kept, kept)].sum(axis=1))))
    return kept


def _spread(distances: Floats, group: list[int]) -> float:
    return float(distances[np.ix_(group, group)].sum())
