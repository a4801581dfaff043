"""Final figures as tables: mean and spread over seeds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.core.checks import require
from demoa.core.errors import ConfigError, unknown_name
from demoa.results.run import Results, RunResult

Key = tuple[tuple[str, str], ...]
Row = tuple[str, ...]

ACCURACIES = ("test_accuracy", "validation_accuracy", "best_accuracy", "late_accuracy", "lowest_late_accuracy")
"""Figures of which more is better; of all others less is."""

FALLS = ("deepest_fall", "majority_fall")
"""Differences of accuracies."""

PERCENT = (*ACCURACIES, *FALLS, "late_byzantine_weight", "late_clipped")
"""Figures that are read in percent."""

WAYS = ("mean", "worst")
"""How the figures of several cells become one: seed by seed."""


@dataclass(frozen=True)
class Cell:
    """What stands in a place of a table.

    Attributes:
        values: The final figure of each seed; a seed with a run that is missing has none.
        collapsed: How many runs collapsed.
        runs: How many runs there should be.
        parts: How many cells of the study were taken together.
    """

    values: dict[int, float]
    collapsed: int
    runs: int
    parts: int


@dataclass(frozen=True)
class FinalTable:
    """A table of final figures: what it has that others have not, the labels of its rows and columns, and its cells."""

    labels: dict[str, str]
    rows: list[Row]
    columns: list[str]
    cells: dict[tuple[Row, str], Cell]


def final_tables(
    results: Results,
    rows: Sequence[str],
    columns: str,
    metric: str,
    over: Sequence[str] = (),
    way: str = "mean",
) -> Iterator[FinalTable]:
    """Yield a table for each combination of the axes that are neither its rows, nor its columns, nor taken together.

    Args:
        results: The runs.
        rows: The axes of the rows; a row has a label of each.
        columns: The axis of the columns.
        metric: The final figure.
        over: Axes whose cells are taken together, seed by seed.
        way: How: their "mean", or the "worst". Where one of them is not settled, there is no figure.
    """
    inside = [*rows, columns, *over]
    known_axes(results, inside)
    require(way in WAYS, "way", way, "one of " + ", ".join(WAYS))
    if len(set(inside)) < len(inside):
        raise ConfigError(f"an axis is named twice among {', '.join(inside)}; name each once")
    found, collapsed = finals(results, metric), _collapsed(results)
    planned = {key_of(run.cell) for run in results.runs}
    outside = {axis: labels for axis, labels in results.axes.items() if axis not in inside}
    for fixed in _combinations(outside):
        cells = {}
        for place in _combinations({axis: results.axes[axis] for axis in (*rows, columns)}):
            parts = [key_of({**fixed, **place, **part}) for part in _combinations({a: results.axes[a] for a in over})]
            there = [key for key in parts if key in planned]  # the others were left out of the study
            if there:
                row = tuple(place[axis] for axis in rows)
                values = _together([found.get(key, {}) for key in there], _way(way, metric))
                count = sum(collapsed.get(key, 0) for key in there)
                cells[row, place[columns]] = Cell(values, count, len(there) * len(results.seeds), len(there))
        if cells:
            labels = {axis: label for axis, label in fixed.items() if len(outside[axis]) > 1}
            filled = list(dict.fromkeys(row for row, _ in cells))
            yield FinalTable(labels, filled, results.axes[columns], cells)


def _combinations(axes: Mapping[str, Iterable[str]]) -> Iterator[dict[str, str]]:
    for labels in itertools.product(*axes.values()):
        yield dict(zip(axes, labels, strict=True))


def _way(way: str, metric: str) -> Callable[[list[float]], float]:
    if way == "mean":
        return lambda found: float(np.mean(found))
    return min if metric in ACCURACIES else max


def _together(parts: list[dict[int, float]], way: Callable[[list[float]], float]) -> dict[int, float]:
    """Return one figure per seed that all parts have."""
    seeds = set.intersection(*(set(part) for part in parts))
    return {seed: way([part[seed] for part in parts]) for seed in sorted(seeds)}


def known_axes(results: Results, axes: Iterable[str]) -> None:
    """Raise ConfigError unless results have all of these axes."""
    for axis in axes:
        if axis not in results.axes:
            raise unknown_name("axis", axis, results.axes)


def judged(results: Results) -> dict[Key, list[RunResult]]:
    """Return the runs that each cell is judged by: those of the setting that was chosen, or of the only one."""
    settings: dict[Key, set[Key]] = {}
    for run in results.runs:
        settings.setdefault(key_of(run.cell), set()).add(key_of(run.setting))
    found: dict[Key, list[RunResult]] = {}
    for run in results.runs:
        if run.chosen or len(settings[key_of(run.cell)]) == 1:
            found.setdefault(key_of(run.cell), []).append(run)
    return found


def usual_metric(results: Results) -> str:
    """Return what the end of runs is judged by: accuracy, where there are labels to be found."""
    return "test_accuracy" if any("test_accuracy" in run.final for run in results.runs) else "test_loss"


def finals(results: Results, metric: str) -> dict[Key, dict[int, float]]:
    """Return the final figure of each seed of each cell, of the setting that the cell is judged by."""
    found = judged(results)
    known = {name for runs in found.values() for run in runs for name in run.figures}
    if not known:
        raise ConfigError("no cell is settled yet, so there are no final figures; go on with the sweep")
    if metric not in known:
        raise unknown_name("final figure", metric, known)
    return {
        key: {run.seed: float(run.figures[metric]) for run in runs if run.figures.get(metric) is not None}
        for key, runs in found.items()
    }


def _collapsed(results: Results) -> dict[Key, int]:
    return {key: sum(bool(run.final.get("collapsed")) for run in runs) for key, runs in judged(results).items()}


def key_of(labels: Mapping[str, Any]) -> Key:
    """Return labels by axis as a key, whatever their order."""
    return tuple(sorted(labels.items()))
