"""What is known of runs, wherever it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

from demoa.results.folder import Record

MEASURED = ("accuracy", "loss")
METRICS = (*MEASURED, "train_loss", "aggregation_error", "step_length", "step_age", "byzantine_weight", "clipped")
"""What a run is drawn by. MEASURED are measured now and then; the others come with every round, if at all."""

DIGITS = 7
"""Significant digits of what is drawn, where it is kept without the records that it comes from."""


@dataclass(frozen=True)
class History:
    """A run as it is drawn: the Byzantine-majority rounds, and (round, value) for each metric that it has.

    A metric that comes with every round is averaged since the point before.
    """

    majority: list[int]
    points: dict[str, list[tuple[int, float]]]

    def plain(self) -> Record:
        """Return it as JSON holds it, with DIGITS significant digits; None is a number that is not finite."""
        points = {metric: [[number, _short(value)] for number, value in found] for metric, found in self.points.items()}
        return {"majority": self.majority, "points": points}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> History:
        """Return what `plain` made of a history."""
        points = {
            metric: [(number, math.nan if value is None else value) for number, value in found]
            for metric, found in plain["points"].items()
        }
        return cls(list(plain["majority"]), points)


def _short(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def deepest_fall(values: Iterable[float]) -> float:
    """Return how far a series ever is below the largest before it.

    >>> deepest_fall([10, 70, 50, 90, 60, 95])
    30
    """
    best, deepest = -math.inf, 0.0
    for value in values:
        best = max(best, value)
        deepest = max(deepest, best - value)
    return deepest


def fall_across(points: Iterable[tuple[int, float]], rounds: Iterable[int]) -> float | None:
    """Return how far a series falls, in the mean, between two points with at least one of some rounds between them.

    The later point may be of the round itself. A rise is a fall below 0; None if no round is between two points.

    >>> fall_across([(5, 40.0), (10, 70.0), (15, 50.0)], [12, 13, 15])
    20.0
    """
    places = list(rounds)
    falls = [
        one - other
        for (start, one), (stop, other) in pairwise(points)
        if any(start < place <= stop for place in places)
    ]
    return sum(falls) / len(falls) if falls else None


class RunSource(Protocol):
    """Where what is known of a run comes from."""

    def spec(self) -> dict[str, Any]:
        """Return the whole spec; empty if the run never began."""
        ...

    def final(self) -> Record:
        """Return the final figures; empty if there are none."""
        ...

    def scores(self) -> dict[str, Record]:
        """Return what validation said on the way, by round."""
        ...

    def machines(self) -> list[str]:
        """Return on what the run was played; empty if that is not known."""
        ...

    def records(self) -> list[Record]:
        """Return the record of each round; empty if the run never began."""
        ...

    def history(self) -> History:
        """Return what is drawn of the run."""
        ...


@dataclass(frozen=True)
class RunResult:
    """A run, as far as it came.

    Attributes:
        id: Its identity.
        cell: What is compared, by axis.
        setting: What was tuned, by axis.
        seed: Its seed.
        chosen: Whether its setting is the one that its cell is judged by; None if that is not settled.
        status: "done", "failed", "dropped" (by halving), "unfinished", or "missing".
        error: Why it failed.
        source: Where the rest of it is.
        seconds: How long it was played, where that is known.
    """

    id: str
    cell: dict[str, str]
    setting: dict[str, str]
    seed: int
    chosen: bool | None
    status: str
    error: str | None
    source: RunSource
    seconds: float | None = None

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The whole spec; empty if the run never began."""
        return self.source.spec()

    @cached_property
    def final(self) -> Record:
        """The final figures; empty if there are none."""
        return self.source.final()

    @cached_property
    def figures(self) -> Record:
        """The final figures, and those that the way there has.

        Where a run ends says little about a run that falls and recovers: of the second half there are means and the
        lowest accuracy, of the whole run how far the accuracy ever fell, and how far at Byzantine-majority rounds.
        """
        late: Record = {}
        for metric, points in self.history.points.items() if self.final else ():
            found = [value for number, value in points if 2 * number > points[-1][0]]
            values = [value for value in found if math.isfinite(value)]
            if len(values) < len(found) and metric in MEASURED:
                continue  # it diverged: what it was before says nothing
            if values:
                late[f"late_{metric}"] = sum(values) / len(values)
            if values and metric == "accuracy":
                late["lowest_late_accuracy"] = min(values)
                late["deepest_fall"] = deepest_fall([value for _, value in points])
                late["majority_fall"] = fall_across(points, self.history.majority)
        return self.final | late

    @property
    def records(self) -> list[Record]:
        """The record of each round; empty if the run never began."""
        return self.source.records()

    @cached_property
    def history(self) -> History:
        """What is drawn of the run."""
        return self.source.history()


@dataclass(frozen=True)
class Results:
    """All runs of a folder, and what is known about them as a whole.

    Attributes:
        title: What it is called.
        note: What a reader should know.
        scaled: What was made smaller than it should be.
        axes: What is compared: the labels of each axis, in order.
        seeds: What is averaged over.
        tuned: The names of what was tuned, and how.
        runs: The runs, in the order of the grid.
        layout: What the study says about its figures.
    """

    title: str
    note: str
    scaled: tuple[str, ...]
    axes: dict[str, list[str]]
    seeds: tuple[int, ...]
    tuned: tuple[str, ...]
    method: str
    runs: tuple[RunResult, ...]
    layout: dict[str, Any] = field(default_factory=dict)
