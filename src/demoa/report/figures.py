"""Figures for a paper, in its grid: rows are splits, columns are attacks, curves are algorithms."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from demoa.core.errors import ConfigError, StoreError
from demoa.report.gather import Figure, Panel, band, figures_of, layout_of, missing, with_roles
from demoa.report.style import MARK, colours_of, dashes_of, name_of
from demoa.results import Results, RunFolder
from demoa.results.reader import side_by_side

LOOKS: dict[Any, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,  # letters stay letters, as publishers ask for
    "svg.hashsalt": "demoa",  # the same results give the same bytes
}
SUFFIXES = (".png", ".pdf", ".svg")
DPI = 200
SCREEN_DPI = 120
"""For pictures that stand in a page beside others."""
PANEL_INCHES = (1.9, 1.7)
LEGEND_INCHES = 1.6
"""How wide an entry of the legend is."""
NOTE_LETTERS = 60
"""How much of an error stands in a panel; all of it is in the page."""


def save_figure(figure: Figure, metrics: tuple[str, ...], targets: list[Path]) -> None:
    """Draw a figure into files, by their suffix: .pdf, .png, .svg."""
    save_canvas(draw(figure, metrics), targets)


def save_canvas(canvas: Canvas, targets: list[Path], dpi: int = DPI) -> None:
    """Write what was drawn into files, by their suffix."""
    for target in targets:
        if target.suffix not in SUFFIXES:
            raise ConfigError(f"a picture must end in {', '.join(SUFFIXES)}, got {str(target)!r}")
    with mpl.rc_context(LOOKS):
        for target in targets:
            # No date inside: the same results give the same bytes.
            undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(target.suffix)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                canvas.savefig(target, dpi=dpi, metadata=undated)
            except (OSError, ValueError) as error:
                raise StoreError(f"cannot draw into {target}: {error}") from error


def draw_runs(folders: list[Path], target: Path) -> None:
    """Draw runs that lie in some folders into one file, side by side."""
    draw_results(side_by_side("", [RunFolder(folder) for folder in folders]), target)


def draw_results(
    results: Results, target: Path, roles: Mapping[str, str] | None = None, metrics: Sequence[str] = ()
) -> None:
    """Draw curves over rounds into one file.

    Args:
        results: The runs.
        target: The file.
        roles: Which axes are "rows", "columns" and "curves", where it is not as the study says.
        metrics: What is drawn, where it is not as the study says.
    """
    layout = layout_of(with_roles(results, roles or {}, metrics))
    (figure, *others) = figures_of(results, layout)
    if others:
        inside = (layout.rows, layout.columns, layout.curves)
        axes = ", ".join(axis for axis, labels in results.axes.items() if len(labels) > 1 and axis not in inside)
        raise ConfigError(f"these runs differ in too much for one picture: in {axes}; draw fewer, or use demoa report")
    save_canvas(draw(figure, layout.metrics), [target], SCREEN_DPI)


def draw(figure: Figure, metrics: tuple[str, ...]) -> Canvas:
    """Return a figure as matplotlib draws it: mean and standard deviation, and a tick for each majority round."""
    with mpl.rc_context(LOOKS):
        return _drawn(figure, metrics)


def _drawn(figure: Figure, metrics: tuple[str, ...]) -> Canvas:
    rows = [(row, metric) for row in figure.rows for metric in metrics]
    width, height = PANEL_INCHES
    if len(figure.columns) < 3:
        width, height = 1.5 * width, 1.2 * height
    size = (0.6 + width * len(figure.columns), 0.7 + height * len(rows))
    canvas = Canvas(figsize=size, layout="constrained")
    axes = canvas.subplots(len(rows), len(figure.columns), sharex=True, sharey="row", squeeze=False)
    colours = colours_of(figure.curves)
    by_place = {(panel.row, panel.column): panel for panel in figure.panels}
    for line, (row, metric) in enumerate(rows):
        for place, column in enumerate(figure.columns):
            axis = axes[line, place]
            panel = by_place.get((row, column))
            if panel is None:
                axis.set_axis_off()
                continue
            _draw_panel(axis, panel, metric, colours)
            above = [there for there, _ in rows[:line] if (there, column) in by_place]
            if not above:
                axis.set_title(name_of(column), fontsize=9)
            if line == len(rows) - 1:
                axis.set_xlabel("round")
            if not any((row, before) in by_place for before in figure.columns[:place]):
                axis.set_ylabel("\n".join(filter(None, [name_of(row), name_of(metric)])))
    marks = []
    if any(each for panel in figure.panels for line in panel.lines for each in line.majority.values()):
        marks = [Line2D([], [], color=MARK, marker="|", ls="none", label="Byzantine-majority round")]
    legend(canvas, figure.curves, marks, max(len(line.runs) for panel in figure.panels for line in panel.lines))
    return canvas


def _draw_panel(axis: Any, panel: Panel, metric: str, colours: dict[str, str]) -> None:
    factor = 100 if metric == "accuracy" else 1
    said = []
    dashes = dashes_of(list(colours))
    for line in panel.lines:
        colour = colours[line.label]
        mean = line.mean(metric)
        if mean is not None:
            rounds, values, spread = mean
            axis.plot(rounds, factor * np.array(values), color=colour, ls=dashes[line.label], lw=1.3)
            if len(line.runs) > 1:
                edges = np.array([band(*both, metric) for both in zip(values, spread, strict=True)]).T
                axis.fill_between(rounds, *factor * edges, color=colour, alpha=0.18, lw=0)
            continue
        for seen in line.by_seed(metric).values():
            axis.plot(*np.array(seen, float).T * np.array([[1], [factor]]), color=colour, lw=0.7, ls=":")
        said.append(textwrap.shorten(f"{name_of(line.label)}: {missing(line)}", NOTE_LETTERS, placeholder="..."))
    ticks = sorted({number for line in panel.lines for each in line.majority.values() for number in each})
    axis.vlines(ticks, 0, 0.035, color=MARK, lw=0.6, transform=axis.get_xaxis_transform())
    axis.set(**({"ylim": (0, 101)} if metric == "accuracy" else {"yscale": "log"}))
    axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axis.grid(axis="y", lw=0.3)
    axis.tick_params(length=2, width=0.6)
    if said:
        note = axis.text(
            0.03, 0.06, "\n".join(said), transform=axis.transAxes, fontsize=5.5, color="#b00020", va="bottom"
        )
        note.set_in_layout(False)  # what does not fit is cut off, and moves nothing
        note.set_clip_on(True)


def legend(canvas: Canvas, curves: list[str], marks: list[Line2D], seeds: int) -> None:
    """Put the names of the curves below a figure, what other marks mean, and how many seeds there are."""
    colours, dashes = colours_of(curves), dashes_of(curves)
    handles = [Line2D([], [], color=colours[curve], ls=dashes[curve], lw=1.6, label=name_of(curve)) for curve in curves]
    handles += marks
    room = max(1, int(canvas.get_figwidth() / LEGEND_INCHES))
    canvas.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), room),
        frameon=False,
        title=f"mean and standard deviation over {seeds} seeds" if seeds > 1 else "one seed",
        title_fontsize=7,
    )
