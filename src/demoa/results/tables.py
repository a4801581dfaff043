"""Final figures as tables: mean and spread over seeds, and whether what is compared differs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from demoa.core.errors import ConfigError, unknown_name
from demoa.core.seeding import generator
from demoa.core.types import Floats
from demoa.results.run import Results

EXACT = 16
"""Up to so many pairs all ways of exchanging them are counted; of more, DRAWN are drawn."""

DRAWN = 100_000

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cell:
    """The final figures of a cell, by seed; a run that is missing has none."""

    values: dict[int, float]

    def said(self, factor: float) -> str:
        """Return mean and standard deviation in words; one seed has no spread."""
        found = factor * np.array(list(self.values.values()))
        if len(found) == 0:
            return "-"
        spread = f" ± {found.std(ddof=1):.2f}" if len(found) > 1 else ""
        return f"{found.mean():.2f}{spread}"


@dataclass(frozen=True)
class Difference:
    """How much more one label has than another, over pairs of runs that differ in nothing else."""

    mean: float
    pairs: int
    p: float


@dataclass(frozen=True)
class FinalTable:
    """A table of final figures: what it has that others have not, its rows and columns, and its cells."""

    labels: dict[str, str]
    rows: list[str]
    columns: list[str]
    cells: dict[tuple[str, str], Cell]


def final_tables(results: Results, rows: str, columns: str, metric: str = "test_accuracy") -> Iterator[FinalTable]:
    """Yield a table for each combination of the axes that are neither its rows nor its columns."""
    for axis in (rows, columns):
        if axis not in results.axes:
            raise unknown_name("axis", axis, results.axes)
    if rows == columns:
        raise ConfigError(f"rows and columns are both {rows}; name two axes")
    found = finals(results, metric)
    others = {axis: labels for axis, labels in results.axes.items() if axis not in (rows, columns)}
    for chosen in itertools.product(*others.values()):
        fixed = dict(zip(others, chosen, strict=True))
        cells = {}
        for row, column in itertools.product(results.axes[rows], results.axes[columns]):
            key = _key({**fixed, rows: row, columns: column})
            if key in found:
                cells[row, column] = Cell(found[key])
        if cells:
            labels = {axis: label for axis, label in fixed.items() if len(others[axis]) > 1}
            yield FinalTable(labels, results.axes[rows], results.axes[columns], cells)


def finals(results: Results, metric: str) -> dict[Key, dict[int, float]]:
    """Return the final figure of each seed of each cell, of the setting that the cell is judged by."""
    if not any(metric in run.final for run in results.runs):
        raise unknown_name("final figure", metric, {name for run in results.runs for name in run.final})
    settings: dict[Key, set[Key]] = {}
    for run in results.runs:
        settings.setdefault(_key(run.cell), set()).add(_key(run.setting))
    found: dict[Key, dict[int, float]] = {}
    for run in results.runs:
        if run.chosen or len(settings[_key(run.cell)]) == 1:
            values = found.setdefault(_key(run.cell), {})
            if run.final.get(metric) is not None:
                values[run.seed] = float(run.final[metric])
    return found


def difference(results: Results, axis: str, label: str, against: str, metric: str = "test_accuracy") -> Difference:
    """Return how much more the runs with one label of an axis have than those with another.

    Runs are paired by seed and by all other labels. p is that of a test by exchange: how often a mean difference as
    large would come about if in each pair it were chance which run has which label.
    """
    for name in (label, against):
        if name not in results.axes[axis]:
            raise unknown_name(f"label of {axis}", name, results.axes[axis])
    found = finals(results, metric)
    pairs = []
    for key, values in found.items():
        cell = dict(key)
        if cell[axis] == label:
            other = found.get(_key({**cell, axis: against}), {})
            pairs += [values[seed] - other[seed] for seed in sorted(values.keys() & other.keys())]
    if not pairs:
        return Difference(float("nan"), 0, float("nan"))
    return Difference(float(np.mean(pairs)), len(pairs), exchanged(np.array(pairs)))


def exchanged(differences: Floats) -> float:
    """Return the p of a two-sided test by exchange of signs.

    >>> exchanged(np.array([1.0, 1.0, 1.0, 1.0]))
    0.125
    """
    count = len(differences)
    if count <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=count)))
        extra = 0
    else:
        signs = generator(0, "exchanged", count).choice([-1.0, 1.0], (DRAWN, count))
        extra = 1  # what was seen is one of the ways
    reached = np.abs(signs @ differences) >= abs(differences.sum()) * (1 - 1e-12)
    return float((reached.sum() + extra) / (len(signs) + extra))


def _key(cell: dict[str, str]) -> Key:
    return tuple(sorted(cell.items()))
