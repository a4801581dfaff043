"""From results to what a report shows: figures with panels, each with curves, and what is missing in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from demoa.core.errors import ConfigError, unknown_name
from demoa.report.style import is_logarithmic
from demoa.results.run import Results, RunResult
from demoa.results.tables import Key, judged, key_of, known_axes

ROWS = ("split", "task.partition.name", "task.partition")
COLUMNS = ("attack.name", "attack")
CURVES = ("algorithm.name", "algorithm")


@dataclass(frozen=True)
class Hole:
    """A run that a figure should have and has not."""

    seed: int
    status: str
    error: str | None


@dataclass(frozen=True)
class Line:
    """What one curve of a panel is made of: the runs of the chosen setting of a cell, one per seed."""

    label: str
    runs: tuple[RunResult, ...]
    setting: dict[str, str]
    holes: tuple[Hole, ...]

    def by_seed(self, metric: str) -> dict[int, list[tuple[int, float]]]:
        """Return (round, value) for each seed, as far as there are any."""
        found = {run.seed: run.history.points.get(metric, []) for run in self.runs}
        return {seed: points for seed, points in found.items() if points}

    def mean(self, metric: str) -> tuple[list[int], list[float], list[float]] | None:
        """Return rounds, mean and standard deviation over all seeds; None if a run is missing."""
        if self.holes:
            return None
        found = list(self.by_seed(metric).values())
        if not found or len(found) < len(self.runs):
            return None
        rounds = [number for number, _ in found[0]]
        if any([number for number, _ in each] != rounds for each in found):
            return None
        values = np.array([[value for _, value in each] for each in found])
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
        return rounds, values.mean(axis=0).tolist(), spread.tolist()

    @property
    def final(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the test accuracy at the end, or of the loss; None if a run is missing."""
        return self.end(self.judged_by)

    def end(self, metric: str) -> tuple[float, float] | None:
        """Return mean and standard deviation of a final figure over seeds; None if a run is missing."""
        values = [run.figures[metric] for run in self.runs if run.figures.get(metric) is not None]
        if self.holes or not values or len(values) < len(self.runs):
            return None
        return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    @cached_property
    def judged_by(self) -> str:
        """What the end of its runs is judged by."""
        return "test_accuracy" if any("test_accuracy" in run.final for run in self.runs) else "test_loss"

    @property
    def collapsed(self) -> list[int]:
        """The seeds whose run collapsed."""
        return [run.seed for run in self.runs if run.final.get("collapsed")]

    @property
    def majority(self) -> dict[int, list[int]]:
        """The Byzantine-majority rounds, by seed."""
        return {run.seed: run.history.majority for run in self.runs}


def missing(line: Line) -> str:
    """Return what a line lacks, in words."""
    groups: dict[str, list[str]] = {}
    for hole in line.holes:
        groups.setdefault(f"{hole.status}: {hole.error}" if hole.error else hole.status, []).append(str(hole.seed))
    if not groups:
        return "ended with a loss that is not finite" if line.final is None else "has no points of this kind"
    return "; ".join(f"seed {', '.join(seeds)} {why}" for why, seeds in groups.items())


def band(mean: float, deviation: float, metric: str) -> tuple[float, float]:
    """Return the edges of a band of one standard deviation; on a log scale the lower one as far below as the upper.

    >>> band(0.5, 0.1, "accuracy"), band(2.0, 2.0, "loss")
    ((0.4, 0.6), (1.0, 4.0))
    """
    if mean <= 0 or not is_logarithmic(metric):
        return mean - deviation, mean + deviation
    return mean * mean / (mean + deviation), mean + deviation


@dataclass(frozen=True)
class Panel:
    """One place in the grid of a figure."""

    row: str
    column: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Figure:
    """A grid of panels: what stays the same in it, and which axes are its rows, columns and curves."""

    labels: dict[str, str]
    rows: list[str]
    columns: list[str]
    curves: list[str]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Layout:
    """Which axis is what in a figure; None where there is none."""

    rows: str | None
    columns: str | None
    curves: str | None
    metrics: tuple[str, ...]


def with_roles(results: Results, roles: Mapping[str, str], metrics: Sequence[str] = ()) -> Results:
    """Return results whose figures have other rows, columns, curves or metrics than their study says."""
    known_axes(results, roles.values())
    if len(set(roles.values())) < len(roles):
        raise ConfigError(f"an axis has two roles among {', '.join(roles.values())}; give each one")
    for metric in metrics:
        drawn = {name for run in results.runs for name in run.history.points}
        if metric not in drawn:
            raise unknown_name("metric", metric, drawn)
    kept = {role: axis for role, axis in results.layout.items() if role == "metrics" or axis not in roles.values()}
    return replace(results, layout=kept | dict(roles) | ({"metrics": list(metrics)} if metrics else {}))


def layout_of(results: Results) -> Layout:
    """Return which axis is what: as the study says, or as the paper has it."""
    said = results.layout
    free = [axis for axis in results.axes if axis not in said.values()]

    def take(kind: str, usual: Iterable[str]) -> str | None:
        if kind in said:
            return str(said[kind])
        for axis in usual:
            if axis in free:
                free.remove(axis)
                return axis
        return None

    curves = take("curves", CURVES)
    columns = take("columns", COLUMNS)
    rows = take("rows", ROWS)
    several = [axis for axis in free if len(results.axes[axis]) > 1]
    if curves is None and several:
        curves = several.pop(0)
    if columns is None and several:
        columns = several.pop(0)
    metrics = said.get("metrics", [])
    if not metrics:
        labelled = any("test_accuracy" in run.final or "accuracy" in run.history.points for run in results.runs)
        metrics = ["accuracy" if labelled else "loss"]
    return Layout(rows, columns, curves, tuple(metrics if isinstance(metrics, list) else [metrics]))


def figures_of(results: Results, layout: Layout) -> list[Figure]:
    """Return one figure for each combination of the axes that are neither rows, columns nor curves."""
    inside = (layout.rows, layout.columns, layout.curves)
    outside = {axis: labels for axis, labels in results.axes.items() if axis not in inside}
    lines = lines_of(results)
    made = []
    for chosen in itertools.product(*outside.values()):
        fixed = dict(zip(outside, chosen, strict=True))
        rows, columns, curves = ([""] if axis is None else results.axes[axis] for axis in inside)
        panels = []
        for row, column in itertools.product(rows, columns):
            found = []
            for curve in curves:
                inner = zip(inside, (row, column, curve), strict=True)
                cell = fixed | {axis: label for axis, label in inner if axis is not None}
                if (line := lines.get(key_of(cell))) is not None:
                    found.append(Line(curve, line.runs, line.setting, line.holes))
            if found:
                panels.append(Panel(row, column, tuple(found)))
        if panels:
            made.append(Figure(fixed, rows, columns, curves, tuple(panels)))
    return made


def lines_of(results: Results) -> dict[Key, Line]:
    """Return the runs that each cell is judged by, and what is missing among them."""
    cells: dict[Key, list[RunResult]] = {}
    for run in results.runs:
        cells.setdefault(key_of(run.cell), []).append(run)
    settled = judged(results)
    lines = {}
    for key, runs in cells.items():
        if key in settled:
            holes = [Hole(run.seed, run.status, run.error) for run in settled[key] if run.status != "done"]
            seen = {run.seed for run in settled[key]}
            holes += [Hole(seed, "missing", None) for seed in results.seeds if seed not in seen]
            lines[key] = Line("", tuple(settled[key]), settled[key][0].setting, tuple(holes))
        else:
            done = sum(run.status == "done" for run in runs)
            errors = [run.error for run in runs if run.error]
            said = f"tuning is not settled: {done} of {len(runs)} runs are through"
            error = f"{said}; {errors[0]}" if errors else said
            lines[key] = Line("", (), {}, tuple(Hole(seed, "unfinished", error) for seed in results.seeds))
    return lines
