"""Where runs end, in one picture: a panel per row and column, a place per label, a mark per curve."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from demoa.core.errors import ConfigError
from demoa.core.types import Floats
from demoa.report.figures import LOOKS, SCREEN_DPI, label_of_row, legend, save_canvas
from demoa.report.gather import Layout, Line, band, layout_of, lines_of, with_roles
from demoa.report.stretched import NOTE, not_stretched, stretch
from demoa.report.style import MARK, colours_of, is_logarithmic, name_of, named
from demoa.results.run import Results, RunResult
from demoa.results.tables import ACCURACIES, FALLS, PERCENT, finals, known_axes, usual_metric

PLACE_INCHES = 0.75
"""How wide a label of the lower axis is."""
LEAST_INCHES = 5.0
"""How wide a picture is at least: its legend needs that."""
PANEL_INCHES = 1.9
SHARE = 0.62
"""How much of a place the marks of all curves take."""


def draw_finals(
    results: Results,
    places: str,
    target: Path,
    roles: Mapping[str, str] | None = None,
    metric: str | None = None,
    *,
    stretched: bool = False,
) -> None:
    """Draw where runs end into a file: see `finals_of` for the picture, `draw_results` for the roles of axes."""
    results = with_roles(results, roles or {})
    canvas = finals_of(results, layout_of(results), places, metric or usual_metric(results), stretched=stretched)
    save_canvas(canvas, [target], SCREEN_DPI)


def finals_of(results: Results, layout: Layout, places: str, metric: str, *, stretched: bool = False) -> Canvas:
    """Return a picture of final figures: mean and standard deviation, and a dot for each seed, hollow if it collapsed.

    Args:
        results: The runs.
        layout: Which axes are the rows and columns of panels, and the curves.
        places: The axis whose labels stand side by side in each panel.
        metric: The final figure.
        stretched: Whether accuracies that are close to 100 % are spread out.
    """
    columns = None if layout.columns == places else layout.columns
    _check(results, {"rows": layout.rows, "columns": columns, "curves": layout.curves, "final": places})
    finals(results, metric)  # refuses one that runs do not have
    if stretched and metric not in ACCURACIES:
        raise not_stretched(metric)
    rows_of, columns_of, curves, labels = (
        [""] if axis is None else results.axes[axis] for axis in (layout.rows, columns, layout.curves, places)
    )
    lines = [(dict(key), line) for key, line in lines_of(results).items()]
    values = [_value(run, metric) for _, line in lines for run in line.runs]
    ends = np.array([value for value in values if value is not None])
    limits = _limits(ends, metric)
    width = 1.0 + PLACE_INCHES * len(labels) * len(columns_of)
    size = (max(width, LEAST_INCHES), 0.9 + PANEL_INCHES * len(rows_of))
    with mpl.rc_context(LOOKS):
        canvas = Canvas(figsize=size, layout="constrained")
        axes = canvas.subplots(len(rows_of), len(columns_of), sharex=True, sharey=True, squeeze=False)
        for cell, line in lines:
            row, column, curve = (cell.get(axis or "", "") for axis in (layout.rows, columns, layout.curves))
            axis = axes[rows_of.index(row), columns_of.index(column)]
            _mark(axis, line, metric, labels.index(cell[places]), curves.index(curve), curves)
        for place, row in enumerate(rows_of):
            for number, column in enumerate(columns_of):
                _dress(
                    axes[place, number],
                    [named(places, label) for label in labels],
                    metric,
                    limits,
                )
                axes[0, number].set_title(named(columns, column), fontsize=9)
            unit = ", points" if metric in FALLS else ", %" if metric in PERCENT else ""
            unit += f" {NOTE}" if stretched else ""
            axes[place, 0].set_ylabel(label_of_row(layout.rows, row, f"{name_of(metric)}{unit}"))
        if stretched:
            stretch(axes[0, 0], ends)
        hollow = Line2D([], [], color=MARK, marker="o", mfc="none", ls="none", ms=3, label="collapsed")
        ended_badly = any(run.final.get("collapsed") and _value(run, metric) for _, line in lines for run in line.runs)
        legend(canvas, layout.curves, curves, [hollow] if ended_badly else [], max(len(line.runs) for _, line in lines))
    return canvas


def _check(results: Results, roles: Mapping[str, str | None]) -> None:
    """Refuse axes that are not there, that have two roles, or none though runs differ in them."""
    given = {role: axis for role, axis in roles.items() if axis is not None}
    known_axes(results, given.values())
    for (one, axis), (other, twin) in itertools.combinations(given.items(), 2):
        if axis == twin:
            raise ConfigError(f"{axis} is both --{one} and --{other}: give one of them another axis")
    others = [axis for axis, labels in results.axes.items() if len(labels) > 1 and axis not in given.values()]
    if others:
        raise ConfigError(f"{', '.join(others)} has several labels and no place in the picture; choose with --where")


def _value(run: RunResult, metric: str) -> float | None:
    """Return a final figure as it is drawn; None if there is none."""
    found = run.figures.get(metric)
    return None if found is None else float(found) * (100.0 if metric in PERCENT else 1.0)


def _mark(axis: Any, line: Line, metric: str, place: int, curve: int, curves: list[str]) -> None:
    """Draw one curve's runs at one place."""
    width = SHARE / len(curves)
    where = place - SHARE / 2 + width * (curve + 0.5)
    colour = colours_of(curves)[curves[curve]]
    for run in line.runs:
        value = _value(run, metric)
        if value is not None:
            inside = "none" if run.final.get("collapsed") else colour
            axis.plot(where, value, "o", ms=2.6, mew=0.7, color=colour, mfc=inside, alpha=0.8, zorder=3)
    end = line.end(metric)
    if end is None:
        axis.text(where, 1, "?", color="#b00020", ha="center", transform=axis.get_xaxis_transform())
        return
    mean, spread = (part * (100.0 if metric in PERCENT else 1.0) for part in end)
    half = 0.42 * width
    axis.plot([where - half, where + half], [mean, mean], color=colour, lw=1.8, solid_capstyle="butt", zorder=2)
    if len(line.runs) > 1:
        low, high = band(mean, spread, metric)
        axis.vlines(where, low, high, color=colour, lw=3.2, alpha=0.25, zorder=1)


def _limits(ends: Floats, metric: str) -> tuple[float | None, float | None]:
    """Return what is to be seen: of accuracies, all and a round number below them; of others 0, too."""
    least = min(ends, default=0.0)
    if metric in ACCURACIES:
        return 10 * math.floor((least - 2) / 10) if least > 12 else 0, 101
    return (None if least < 0 else 0), None


def _dress(axis: Any, labels: list[str], metric: str, limits: tuple[float | None, float | None]) -> None:
    axis.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=7)
    axis.set_xlim(-0.5, len(labels) - 0.5)
    for between in range(1, len(labels)):
        axis.axvline(between - 0.5, color="#e4e6ea", lw=0.6, zorder=0)
    if is_logarithmic(metric):
        axis.set_yscale("log")
    else:
        axis.set_ylim(*limits)
    axis.grid(axis="y", lw=0.3)
    axis.tick_params(length=2, width=0.6)
