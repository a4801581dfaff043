"""Figures for a paper, in its grid: rows are splits, columns are attacks, curves are algorithms."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from demoa.core.errors import ConfigError, StoreError
from demoa.core.types import Floats
from demoa.report.gather import Figure, Layout, Panel, band, figures_of, layout_of, missing, with_roles
from demoa.report.stretched import NOTE, not_stretched, stretch
from demoa.report.style import MARK, colours_of, dashes_of, is_logarithmic, name_of, named
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
LEGEND_INCHES = (0.75, 0.07)
"""How wide an entry of the legend is: its mark and the room around it, and a letter."""
LABEL_LETTERS = 28
"""How long a line of the label of an axis is."""
ROUNDING = 1e-14
"""Losses that are this part of the largest are rounding."""
PLAIN_DECADES = 1e3
"""Up to this much between the ends of a log scale, its numbers are written out."""
NOTE_LETTERS = 90
"""How much of an error stands in a panel; all of it is in the page."""
NOTE_LINE_LETTERS = 44
"""How long a line of it is."""


def save_figure(figure: Figure, layout: Layout, targets: list[Path]) -> None:
    """Draw a figure into files, by their suffix: .pdf, .png, .svg."""
    save_canvas(draw(figure, layout), targets)


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
    results: Results,
    target: Path,
    roles: Mapping[str, str] | None = None,
    metrics: Sequence[str] = (),
    *,
    stretched: bool = False,
) -> None:
    """Draw curves over rounds into one file.

    Args:
        results: The runs.
        target: The file.
        roles: Which axes are "rows", "columns" and "curves", where it is not as the study says.
        metrics: What is drawn, where it is not as the study says.
        stretched: Whether accuracies that are close to 100 % are spread out.
    """
    layout = layout_of(with_roles(results, roles or {}, metrics))
    (figure, *others) = figures_of(results, layout)
    if others:
        inside = (layout.rows, layout.columns, layout.curves)
        axes = ", ".join(axis for axis, labels in results.axes.items() if len(labels) > 1 and axis not in inside)
        raise ConfigError(f"these runs differ in too much for one picture: in {axes}; draw fewer, or use demoa report")
    save_canvas(draw(figure, layout, stretched=stretched), [target], SCREEN_DPI)


def draw(figure: Figure, layout: Layout, *, stretched: bool = False) -> Canvas:
    """Return a figure as matplotlib draws it: mean and standard deviation, and a tick for each majority round."""
    if stretched and "accuracy" not in layout.metrics:
        raise not_stretched(", ".join(layout.metrics))
    with mpl.rc_context(LOOKS):
        return _drawn(figure, layout, stretched)


def _drawn(figure: Figure, layout: Layout, stretched: bool) -> Canvas:
    rows = [(row, metric) for row in figure.rows for metric in layout.metrics]
    width, height = PANEL_INCHES
    if len(figure.columns) < 3:
        width, height = 1.5 * width, 1.2 * height
    size = (0.6 + width * len(figure.columns), 0.7 + height * len(rows))
    canvas = Canvas(figsize=size, layout="constrained")
    axes = canvas.subplots(len(rows), len(figure.columns), sharex=True, sharey="row", squeeze=False)
    colours = colours_of(figure.curves)
    by_place = {(panel.row, panel.column): panel for panel in figure.panels}
    floors = {(row, metric): _floor(figure, row, metric) for row, metric in rows}
    for line, (row, metric) in enumerate(rows):
        for place, column in enumerate(figure.columns):
            axis = axes[line, place]
            panel = by_place.get((row, column))
            if panel is None:
                axis.set_axis_off()
                continue
            _draw_panel(axis, panel, metric, colours, floors[row, metric])
            above = [there for there, _ in rows[:line] if (there, column) in by_place]
            if not above:
                axis.set_title(named(layout.columns, column), fontsize=9)
            if line == len(rows) - 1:
                axis.set_xlabel("round")
            if not any((row, before) in by_place for before in figure.columns[:place]):
                what = f"{name_of(metric)} {NOTE}" if stretched and metric == "accuracy" else name_of(metric)
                axis.set_ylabel(label_of_row(layout.rows, row if len(figure.rows) > 1 else "", what))
        if is_logarithmic(metric):
            _plain_ticks(axes[line, 0])
        elif metric == "accuracy" and stretched:
            stretch(axes[line, 0], 100 * _drawn_values(figure.panels, metric))  # one scale for all rows
        else:  # once all curves are there: panels of a row share their scale
            axes[line, 0].set_ylim(0, 101 if metric == "accuracy" else None)
    seeds = max(len(line.runs) for panel in figure.panels for line in panel.lines)
    marks = []
    if any(each for panel in figure.panels for line in panel.lines for each in line.majority.values()):
        round_of = "Byzantine-majority round" + (" in one of the seeds" if seeds > 1 else "")
        marks = [Line2D([], [], color=MARK, marker="|", ls="none", label=round_of)]
    legend(canvas, layout.curves, figure.curves, marks, seeds)
    return canvas


def _plain_ticks(axis: Any) -> None:
    """Write 0.2 in place of 2 x 10^-1 on a log scale where a few such numbers say it all."""
    low, high = axis.get_ylim()
    if high < PLAIN_DECADES * low:
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())


def _floor(figure: Figure, row: str, metric: str) -> float:
    """Return what is drawn for all that is less: below it, losses are rounding, and a log scale has no 0."""
    if not is_logarithmic(metric):
        return 0.0
    return ROUNDING * max(_drawn_values([panel for panel in figure.panels if panel.row == row], metric), default=0.0)


def _drawn_values(panels: Iterable[Panel], metric: str) -> Floats:
    """Return all that the curves of some panels go through: means, or, where a run is missing, the others."""
    found: list[float] = []
    for line in (line for panel in panels for line in panel.lines):
        mean = line.mean(metric)
        found += mean[1] if mean else [value for seen in line.by_seed(metric).values() for _, value in seen]
    values = np.array(found, float)
    return np.asarray(values[np.isfinite(values)])


def _draw_panel(axis: Any, panel: Panel, metric: str, colours: dict[str, str], floor: float) -> None:
    factor = 100 if metric == "accuracy" else 1
    said = []
    dashes = dashes_of(list(colours))
    for line in panel.lines:
        colour = colours[line.label]
        mean = line.mean(metric)
        if mean is not None:
            rounds, values, spread = mean
            axis.plot(rounds, factor * np.maximum(values, floor), color=colour, ls=dashes[line.label], lw=1.3)
            if len(line.runs) > 1:
                edges = np.array([band(*both, metric) for both in zip(values, spread, strict=True)]).T
                axis.fill_between(rounds, *factor * np.maximum(edges, floor), color=colour, alpha=0.18, lw=0)
            continue
        for seen in line.by_seed(metric).values():
            axis.plot(*np.array(seen, float).T * np.array([[1], [factor]]), color=colour, lw=0.7, ls=":")
        note = textwrap.shorten(f"{name_of(line.label)}: {missing(line)}", NOTE_LETTERS, placeholder="...")
        said += textwrap.wrap(note, NOTE_LINE_LETTERS)
    ticks = sorted({number for line in panel.lines for each in line.majority.values() for number in each})
    axis.vlines(ticks, 0, 0.035, color=MARK, lw=0.6, transform=axis.get_xaxis_transform())
    if is_logarithmic(metric):
        axis.set_yscale("log")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    axis.grid(axis="y", lw=0.3)
    axis.tick_params(length=2, width=0.6)
    if said:
        text = axis.text(
            0.03, 0.06, "\n".join(said), transform=axis.transAxes, fontsize=5.5, color="#b00020", va="bottom"
        )
        text.set_in_layout(False)  # what does not fit is cut off, and moves nothing
        text.set_clip_on(True)


def label_of_row(axis: str | None, row: str, what: str) -> str:
    """Return what stands beside a row of panels: which row it is, and what is drawn, in short lines."""
    return "\n".join(filter(None, [named(axis, row), *textwrap.wrap(what, LABEL_LETTERS)]))


def legend(canvas: Canvas, axis: str | None, curves: list[str], marks: list[Line2D], seeds: int) -> None:
    """Put the names of the curves below a figure, what other marks mean, and how many seeds there are."""
    colours, dashes = colours_of(curves), dashes_of(curves)
    handles = [
        Line2D([], [], color=colours[curve], ls=dashes[curve], lw=1.6, label=named(axis, curve)) for curve in curves
    ]
    handles += marks
    canvas.legend(
        handles=handles,
        loc="outside lower center",
        ncols=_columns([str(handle.get_label()) for handle in handles], canvas.get_figwidth()),
        frameon=False,
        title=f"mean and standard deviation over {seeds} seeds" if seeds > 1 else "one seed",
        title_fontsize=7,
    )


def _columns(labels: Sequence[str], inches: float) -> int:
    """Return in how many columns the entries of a legend fit; they go down before they go across.

    >>> labels = ["FedAvg", "FedCM", "Byz-VR-MARINA-PP", "DeMoA"]
    >>> _columns(labels, inches=6), _columns(labels, inches=4), _columns(labels, inches=1)
    (4, 2, 1)
    """
    mark, letter = LEGEND_INCHES
    for lines in range(1, len(labels)):
        columns = [labels[start : start + lines] for start in range(0, len(labels), lines)]
        if sum(mark + letter * max(map(len, column)) for column in columns) <= inches:
            return len(columns)
    return 1
