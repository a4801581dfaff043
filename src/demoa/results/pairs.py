"""Whether two labels of an axis differ: pairs of runs that differ in nothing else, and a test by exchange of signs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from demoa.core.errors import ConfigError, unknown_name
from demoa.core.seeding import generator
from demoa.core.types import Floats
from demoa.results.run import Results
from demoa.results.tables import finals, key_of, known_axes

EXACT = 16
"""Up to so many pairs all ways of exchanging them are counted; of more, DRAWN are drawn."""

DRAWN = 100_000
BLOCK = 10_000
"""So many ways are drawn at a time."""


@dataclass(frozen=True)
class Difference:
    """How much more one label has than another, over pairs of runs that differ in nothing else.

    Attributes:
        group: Which runs were looked at: labels of some axes.
        label: The label that is compared.
        mean: How much more it has, on average.
        pairs: How many pairs there are.
        p: How often a mean difference as large would come about if in each pair it were chance which run is which.
        corrected: The same with Holm's correction for all differences that were asked for together.
    """

    group: dict[str, str]
    label: str
    mean: float
    pairs: int
    p: float
    corrected: float


def differences(results: Results, axis: str, against: str, metric: str, by: Sequence[str] = ()) -> list[Difference]:
    """Return how the other labels of an axis differ from one of them, in each group of runs with equal labels `by`.

    Runs are paired by seed and by all other labels.
    """
    known_axes(results, [axis, *by])
    if len({axis, *by}) < 1 + len(by):
        raise ConfigError(f"an axis is named twice among {', '.join([axis, *by])}; name each once")
    if against not in results.axes[axis]:
        raise unknown_name(f"label of {axis}", against, results.axes[axis])
    if len(results.axes[axis]) < 2:
        raise ConfigError(f"{axis} has no other label than {against} to compare with")
    found = finals(results, metric)
    pairs: dict[tuple[tuple[str, ...], str], list[float]] = {}
    for key, values in found.items():
        cell = dict(key)
        if cell[axis] != against:
            other = found.get(key_of({**cell, axis: against}), {})
            gaps = [values[seed] - other[seed] for seed in sorted(values.keys() & other.keys())]
            pairs.setdefault((tuple(cell[each] for each in by), cell[axis]), []).extend(gaps)
    places = [place for place in _places(results, axis, against, by) if pairs.get(place)]
    chances = [exchanged(np.array(pairs[place])) for place in places]
    return [
        Difference(
            dict(zip(by, group, strict=True)),
            label,
            float(np.mean(pairs[group, label])),
            len(pairs[group, label]),
            p,
            corrected,
        )
        for (group, label), p, corrected in zip(places, chances, holm(chances), strict=True)
    ]


def _places(results: Results, axis: str, against: str, by: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield all groups and labels in the order of the axes."""
    for group in itertools.product(*(results.axes[each] for each in by)):
        yield from ((group, label) for label in results.axes[axis] if label != against)


def exchanged(gaps: Floats) -> float:
    """Return the p of a two-sided test by exchange of signs.

    >>> exchanged(np.array([1.0, 1.0, 1.0, 1.0]))
    0.125
    """
    count, seen = len(gaps), abs(gaps.sum()) * (1 - 1e-12)
    if count <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=count)))
        return float(np.mean(np.abs(signs @ gaps) >= seen))
    draw, reached = generator(0, "exchanged", count), 1  # what was seen is one of the ways
    for _ in range(DRAWN // BLOCK):
        signs = draw.choice([-1.0, 1.0], (BLOCK, count))
        reached += int((np.abs(signs @ gaps) >= seen).sum())
    return reached / (DRAWN + 1)


def holm(chances: Sequence[float]) -> list[float]:
    """Return p values corrected for how many there are, by Holm's method.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = least
    return corrected
