"""Whether two labels of an axis differ: pairs of runs, alike but for tuning, and a test by exchange of signs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from demoa.core.errors import ConfigError, unknown_name
from demoa.core.seeding import generator
from demoa.core.types import Floats
from demoa.results.run import Results
from demoa.results.tables import finals, key_of, known_axes

EXACT = 20
"""Up to so many pairs all ways of exchanging them are counted; of more, DRAWN are drawn."""

DRAWN = 100_000
LEAST = 1 / (DRAWN + 1)
"""The smallest p that drawing can come to."""

BLOCK = 10_000
"""So many ways are drawn at a time."""

ENOUGH_SEEDS = 6
"""From so many seeds on they are exchanged as a whole: all runs of a seed share who takes part. Of fewer, exchanging
whole seeds could never come to a p below 0.05."""


@dataclass(frozen=True)
class Difference:
    """How much more one label has than another, over pairs of runs that are alike but for what was tuned.

    Attributes:
        group: Which runs were looked at: labels of some axes.
        label: The label that is compared.
        mean: How much more it has, on average; not a number if there is no pair, as p is.
        spread: The standard deviation over seeds of how much more it has; None if there are not several seeds.
        pairs: How many pairs there are.
        missing: How many more there should be.
        p: How often a mean difference as large would come about if in each pair it were chance which run is which.
        corrected: The same with Holm's correction for all differences that were asked for together and have a pair.
        least: What p would be if all pairs, or seeds, differed the same way.
    """

    group: dict[str, str]
    label: str
    mean: float
    spread: float | None
    pairs: int
    missing: int
    p: float
    corrected: float
    least: float


def differences(results: Results, axis: str, against: str, metric: str, by: Sequence[str] = ()) -> list[Difference]:
    """Return how the other labels of an axis differ from one of them, in each group of runs with equal labels `by`.

    Runs are paired by seed and by all other labels. Where there are ENOUGH_SEEDS, the pairs of a seed are exchanged
    together.
    """
    known_axes(results, [axis, *by])
    if len({axis, *by}) < 1 + len(by):
        raise ConfigError(f"an axis is named twice among {', '.join([axis, *by])}; name each once")
    if against not in results.axes[axis]:
        raise unknown_name(f"label of {axis}", against, results.axes[axis])
    if len(results.axes[axis]) < 2:
        raise ConfigError(f"{axis} has no other label than {against} to compare with")
    found = finals(results, metric)
    planned = {key_of(run.cell) for run in results.runs}
    pairs: dict[tuple[tuple[str, ...], str], list[tuple[int, float]]] = {}
    wanted: dict[tuple[tuple[str, ...], str], int] = {}
    for key in sorted(planned):
        cell = dict(key)
        other = key_of({**cell, axis: against})
        if cell[axis] != against and other in planned:
            place = tuple(cell[each] for each in by), cell[axis]
            mine, theirs = found.get(key, {}), found.get(other, {})
            gaps = [(seed, mine[seed] - theirs[seed]) for seed in sorted(mine.keys() & theirs.keys())]
            pairs.setdefault(place, []).extend(gaps)
            wanted[place] = wanted.get(place, 0) + len(results.seeds)
    places = [place for place in _places(results, axis, against, by) if place in wanted]
    units = {place: _units(pairs[place], len(results.seeds)) for place in places if pairs[place]}
    chances = {place: exchanged(gaps) for place, gaps in units.items()}
    corrected = dict(zip(chances, holm(list(chances.values())), strict=True))
    return [
        Difference(
            group=dict(zip(by, place[0], strict=True)),
            label=place[1],
            mean=float(np.mean([gap for _, gap in pairs[place]])) if pairs[place] else math.nan,
            spread=_spread(pairs[place]),
            pairs=len(pairs[place]),
            missing=wanted[place] - len(pairs[place]),
            p=chances.get(place, math.nan),
            corrected=corrected.get(place, math.nan),
            least=_least(units[place]) if place in units else math.nan,
        )
        for place in places
    ]


def _units(pairs: list[tuple[int, float]], seeds: int) -> Floats:
    """Return what is exchanged: the difference of each pair, or the sum of those of each seed."""
    if seeds < ENOUGH_SEEDS:
        return np.array([gap for _, gap in pairs])
    return np.array([np.sum(gaps) for gaps in _by_seed(pairs)])


def _least(gaps: Floats) -> float:
    """Return the p that these would come to if all of them had the same sign."""
    differ = int(np.count_nonzero(gaps))
    return LEAST if len(gaps) > EXACT else 2.0 ** (1 - max(1, differ))


def _spread(pairs: list[tuple[int, float]]) -> float | None:
    means = [np.mean(gaps) for gaps in _by_seed(pairs)]
    return float(np.std(means, ddof=1)) if len(means) > 1 else None


def _by_seed(pairs: list[tuple[int, float]]) -> list[list[float]]:
    found: dict[int, list[float]] = {}
    for seed, gap in pairs:
        found.setdefault(seed, []).append(gap)
    return list(found.values())


def _places(results: Results, axis: str, against: str, by: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield all groups and labels in the order of the axes."""
    for group in itertools.product(*(results.axes[each] for each in by)):
        yield from ((group, label) for label in results.axes[axis] if label != against)


def exchanged(gaps: Floats) -> float:
    """Return the p of a two-sided test by exchange of signs.

    >>> exchanged(np.array([1.0, 1.0, 1.0, 1.0]))
    0.125
    """
    count = len(gaps)
    seen = abs(gaps.sum()) - 1e-9 * np.abs(gaps).sum()  # sums that are equal but for rounding count as equal
    if count <= EXACT:
        sums = gaps[:1]  # the other sign of the first comes to the same sums, the other way around
        for gap in gaps[1:]:
            sums = np.concatenate([sums + gap, sums - gap])
        return float(np.mean(np.abs(sums) >= seen))
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
