"""Sorting networks: fixed lists of compare-and-swap steps, pruned to what a rule looks at.

A network has no branches, so that one step runs over a whole vector register of columns at once.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Step = tuple[int, int]
"""(i, j), i < j: afterwards wire i holds the smaller of the two values and wire j the larger."""


def sorting_network(wires: int) -> list[Step]:
    """Return Batcher's odd-even merge sort for any number of wires.

    >>> sorting_network(3)
    [(0, 1), (0, 2), (1, 2)]

    Reference: K. E. Batcher, Sorting networks and their applications, 1968.
    """
    steps: list[Step] = []
    run = 1
    while run < wires:
        gap = run
        while gap >= 1:
            for first in range(gap % run, wires - gap, 2 * gap):
                pairs = ((i, i + gap) for i in range(first, min(first + gap, wires - gap)))
                steps += [(i, j) for i, j in pairs if i // (2 * run) == j // (2 * run)]
            gap //= 2
        run *= 2
    return steps


@cache
def rank_network(wires: int, low: int, high: int) -> NDArray[np.intp]:
    """Return the steps, (steps, 2), that bring ranks low..high to wires low..high, in any order there.

    Below low lie the smaller values and above high the larger ones, unsorted.
    """
    group = [0 if wire < low else 1 if wire <= high else 2 for wire in range(wires)]
    return _pruned(sorting_network(wires), group)


@cache
def full_network(wires: int) -> NDArray[np.intp]:
    """Return the steps, (steps, 2), that sort all wires."""
    return _as_array(sorting_network(wires))


def _pruned(steps: list[Step], group: list[int]) -> NDArray[np.intp]:
    """Drop the steps whose two results nobody tells apart.

    Going backwards, wires of one group are interchangeable: a step inside a group changes nothing
    that is looked at. A step that is kept makes its own two inputs interchangeable, and no others.
    """
    group = list(group)
    kept = []
    unused = max(group) + 1
    for i, j in reversed(steps):
        if group[i] != group[j]:
            kept.append((i, j))
            group[i] = group[j] = unused
            unused += 1
    return _as_array(kept[::-1])


def _as_array(steps: list[Step]) -> NDArray[np.intp]:
    return np.array(steps, np.intp).reshape(-1, 2)
