"""What a rule answers: how the rows that it was shown are to be put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from demoa.core.types import Floats


@dataclass(frozen=True)
class Combination:
    """weights @ rows + centre * (the previous aggregate).

    Attributes:
        weights: One per row, (m,).
        centre: The share of the previous aggregate; only rules with `uses_centre` have one.
        notes: Figures worth recording, such as the share of rows that were clipped.
    """

    weights: Floats
    centre: float = 0.0
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RankMean:
    """Per coordinate, the mean of the values of rank low..high, counted from 0."""

    low: int
    high: int


@dataclass(frozen=True)
class NearMedian:
    """Per coordinate, the mean of the `keep` values nearest to the median of the chosen rows, (r,)."""

    keep: int
    chosen: NDArray[np.intp]


Decision: TypeAlias = Combination | RankMean | NearMedian


def average_of(chosen: NDArray[np.intp] | list[int], rows: int) -> Combination:
    """Return the plain average of the chosen rows out of `rows`.

    >>> average_of([0, 2], rows=4).weights.tolist()
    [0.5, 0.0, 0.5, 0.0]
    """
    weights = np.zeros(rows)
    weights[chosen] = 1.0 / len(chosen)
    return Combination(weights)
