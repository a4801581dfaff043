"""Where all other curves end beside one of them, as a map: a panel per curve, a field per row and column."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Canvas

from demoa.core.errors import ConfigError, unknown_name
from demoa.report.figures import LOOKS, SCREEN_DPI, save_canvas
from demoa.report.gather import layout_of, with_roles
from demoa.report.style import is_logarithmic, name_of, named
from demoa.results.run import Results
from demoa.results.tables import ACCURACIES, FALLS, PERCENT, FinalTable, Row, final_tables, usual_metric

FIELD_INCHES = (0.62, 0.36)
LEAST_INCHES = 2.2
"""How wide a panel is at least: its title needs that."""
MARGIN_INCHES = (1.9, 1.5)
"""Beside and below the fields: names of rows, and of columns and colours."""
CAPTION_LETTER_INCHES = 0.055
"""How wide a letter of what stands below is; it has the width of the panels."""
MINE, THEIRS = "#0072B2", "#D55E00"
"""Where the curve that all others are compared with is better, and where the other one is."""
COLOURS = LinearSegmentedColormap.from_list("mine, theirs", [MINE, "#f7f7f7", THEIRS])
DARK = 0.55
"""From so strong a colour on, letters are white."""


@dataclass(frozen=True)
class Gap:
    """How much more one cell has than another.

    Attributes:
        values: The difference, seed by seed.
        seeds: How many seeds there should be.
    """

    values: tuple[float, ...]
    seeds: int

    @property
    def mean(self) -> float:
        """The mean over seeds; not a number if there is none."""
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds; None if there are not several."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    def said(self, factor: float) -> str:
        """Return it as it stands in a field, with how many seeds there are if some are missing."""
        if not self.values:
            return "?"
        value = _number(factor * self.mean, factor, "+")
        return value if len(self.values) == self.seeds else f"{value} ({len(self.values)}/{self.seeds})"


def _number(value: float, factor: float, sign: str = "") -> str:
    """Return a number in words: points with one digit behind the point, others with two in all."""
    return f"{round(value, 1) + 0.0:{sign}.1f}" if factor > 1 else f"{value:{sign}.2g}"


Gaps = dict[tuple[Row, str], Gap]


def draw_differences(
    results: Results,
    against: str,
    target: Path,
    rows: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
    metric: str | None = None,
) -> None:
    """Draw how far from one curve all others end, by row and column, into a file.

    Args:
        results: The runs.
        against: The curve that all others are compared with.
        target: The file.
        rows: The axes of the rows, where they are not as the study says.
        roles: Which axes are "columns" and "curves", where it is not as the study says.
        metric: The final figure; what runs are usually judged by if not given.
    """
    layout = layout_of(with_roles(results, roles or {}))
    curves, columns, rows = layout.curves, layout.columns, list(rows) or [axis for axis in (layout.rows,) if axis]
    if curves is None or columns is None or not rows:
        raise ConfigError("a map of differences needs axes for curves, rows and columns; give --rows and --columns")
    if curves in rows:
        raise ConfigError(f"{curves} has two roles, curves and rows; give each one")
    if against not in results.axes[curves]:
        raise unknown_name(f"label of {curves}", against, results.axes[curves])
    save_canvas(map_of(results, curves, against, rows, columns, metric or usual_metric(results)), [target], SCREEN_DPI)


def map_of(results: Results, curves: str, against: str, rows: Sequence[str], columns: str, metric: str) -> Canvas:
    """Return a picture of differences from one curve: a panel for each other one."""
    tables = list(final_tables(results, rows, columns, metric))
    others = [axis for axis in tables[0].labels if axis != curves]
    if others:
        raise ConfigError(f"{', '.join(others)} has several labels and no place in the map; choose with --where")
    by_curve = {table.labels.get(curves, against): table for table in tables}
    mine = by_curve.pop(against, None)
    if mine is None or not by_curve:
        raise ConfigError(f"there is nothing to compare {against} with; choose more with --where")
    found = {label: gaps(table, mine, len(results.seeds)) for label, table in by_curve.items()}
    with mpl.rc_context(LOOKS):
        return _drawn(found, mine, curves, against, rows, columns, metric, len(results.seeds))


def gaps(one: FinalTable, other: FinalTable, seeds: int) -> Gaps:
    """Return how much more one table has than another, seed by seed, in each cell that both should have."""
    found = {}
    for place in one.cells.keys() & other.cells.keys():
        left, right = one.cells[place].values, other.cells[place].values
        found[place] = Gap(tuple(left[seed] - right[seed] for seed in sorted(left.keys() & right.keys())), seeds)
    return found


def _drawn(
    found: Mapping[str, Gaps],
    mine: FinalTable,
    curves: str,
    against: str,
    rows: Sequence[str],
    columns: str,
    metric: str,
    seeds: int,
) -> Canvas:
    factor = 100.0 if metric in PERCENT else 1.0
    means = [abs(factor * gap.mean) for cells in found.values() for gap in cells.values() if gap.values]
    most = max(means, default=0.0) or 1.0
    width, height = FIELD_INCHES
    size = (
        MARGIN_INCHES[0] + max(width * len(mine.columns), LEAST_INCHES) * len(found),
        MARGIN_INCHES[1] + height * len(mine.rows),
    )
    canvas = Canvas(figsize=size, layout="constrained")
    axes = canvas.subplots(1, len(found), sharey=True, squeeze=False)[0]
    shown: Any = None
    for axis, (label, cells) in zip(axes, found.items(), strict=True):
        field = np.full((len(mine.rows), len(mine.columns)), np.nan)
        for (row, column), gap in cells.items():
            place = mine.rows.index(row), mine.columns.index(column)
            field[place] = factor * gap.mean
            _write(axis, place, gap, factor, seeds, "white" if abs(field[place]) > DARK * most else "black")
        colours = COLOURS.reversed() if _less_is_better(metric) else COLOURS
        shown = axis.imshow(field, cmap=colours, vmin=-most, vmax=most, aspect="auto")
        axis.set_title(named(curves, label), fontsize=9)
        names = [named(columns, each) for each in mine.columns]
        axis.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=7)
        axis.set_yticks(
            range(len(mine.rows)),
            [", ".join(named(*both) for both in zip(rows, row, strict=True)) for row in mine.rows],
            fontsize=7,
        )
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    bar = canvas.colorbar(shown, ax=list(axes), location="bottom", shrink=0.4, aspect=40, pad=0.02)
    letters = int((canvas.get_figwidth() - MARGIN_INCHES[0]) / CAPTION_LETTER_INCHES)
    bar.set_label(textwrap.fill(_caption(metric, named(curves, against), seeds), letters), fontsize=7)
    bar.ax.tick_params(labelsize=6)
    return canvas


def _write(axis: Any, place: tuple[int, int], gap: Gap, factor: float, seeds: int, colour: str) -> None:
    """Write into a field of a map: the mean, and below it, smaller, the spread over seeds."""
    line, column = place
    centred: dict[str, Any] = {"ha": "center", "va": "center", "color": colour}
    size = 7 if len(gap.values) == seeds else 5
    if gap.spread is None:
        axis.text(column, line, gap.said(factor), fontsize=size, **centred)
        return
    axis.text(column, line - 0.12, gap.said(factor), fontsize=size, **centred)
    axis.text(column, line + 0.25, f"± {_number(factor * gap.spread, factor)}", fontsize=5, **centred)


def _less_is_better(metric: str) -> bool:
    return is_logarithmic(metric) or metric in FALLS


def _caption(metric: str, against: str, seeds: int) -> str:
    """Return what numbers and colours of a map mean."""
    unit = ", points" if metric in PERCENT else ""
    judged = metric in ACCURACIES or _less_is_better(metric)
    sides = ("is better", "is worse") if judged else ("has more", "has less")
    spread = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    colours = f"blue where {against} {sides[0]}, orange where it {sides[1]}"
    return f"{name_of(metric)}{unit}: difference from {against}; {colours}; {spread}"
