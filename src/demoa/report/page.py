"""The page of a report: everything in one file that opens without a network."""

from __future__ import annotations

import base64
import html
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

import demoa
from demoa.core.errors import ConfigError
from demoa.report.figures import save_figure
from demoa.report.gather import Figure, Layout, Line, band, figures_of, layout_of, missing
from demoa.report.style import MARK, colours_of, dashes_of, is_logarithmic, name_of, named, said
from demoa.results.folder import replace_text
from demoa.results.reader import read_results
from demoa.results.run import METRICS, Results, RunResult

DIGITS = 5
"""How exact a curve is in the page."""
DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot"}
"""Kinds of lines, as Plotly calls them."""


def write_report(folder: Path, target: Path | None = None) -> Path:
    """Write the report on results, a folder or an archive, and its figures as PDF and PNG beside it; says where.

    The same results give the same page, byte for byte: it holds no time of its making.
    """
    results = read_results(folder)
    target = target or (folder / "report.html" if folder.is_dir() else folder.with_suffix(".html"))
    layout = layout_of(results)
    figures = figures_of(results, layout)
    pictures = []
    for number, figure in enumerate(figures):
        stem = target.parent / "figures" / _stem(figure, number, len(figures))
        files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("pdf", "png")]
        save_figure(figure, layout, files)
        pictures.append(files)
    content = _content(results, layout, figures, pictures)
    replace_text(target, _page(results.title, content))
    return target


def _page(title: str, content: dict[str, Any]) -> str:
    parts = resources.files("demoa.report") / "assets"
    data = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    texts = {
        "title": html.escape(title),
        "style": (parts / "page.css").read_text(),
        "plotly": _plotly(),
        "data": data,
        "script": (parts / "page.js").read_text(),
    }
    return re.sub(r"@@(\w+)@@", lambda found: texts[found[1]], (parts / "page.html").read_text())


def _plotly() -> str:
    """Return the script that draws the curves; it is put into the page, so that it needs no network."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ConfigError("a report needs Plotly: pip install 'demoa[study]'") from None
    script: str = get_plotlyjs()
    return script


def _content(results: Results, layout: Layout, figures: list[Figure], pictures: list[list[Path]]) -> dict[str, Any]:
    """Return all that the page shows, as JSON holds it."""
    counts: dict[str, int] = {}
    for run in results.runs:
        counts[run.status] = counts.get(run.status, 0) + 1
    return {
        "title": results.title,
        "note": results.note,
        "scaled": list(results.scaled),
        "seeds": list(results.seeds),
        "counts": counts,
        "tuned": [name_of(axis) for axis in results.tuned],
        "method": results.method,
        "version": demoa.__version__,
        "mark": MARK,
        "metrics": [
            {"key": metric, "name": name_of(metric), "logarithmic": is_logarithmic(metric)} for metric in METRICS
        ],
        "shown": list(layout.metrics),
        "figures": [
            _figure(figure, layout, files, number)
            for number, (figure, files) in enumerate(zip(figures, pictures, strict=True))
        ],
        "tuning": _tuning(results),
        "axes": [
            {"key": axis, "name": name_of(axis)}
            for axis in (*results.axes, *results.tuned)
            if len(results.axes.get(axis, ())) != 1
        ],
        "runs": [_run(run) for run in results.runs],
    }


def _figure(figure: Figure, layout: Layout, files: list[Path], number: int) -> dict[str, Any]:
    colours, dashes = colours_of(figure.curves), dashes_of(figure.curves)
    return {
        "id": f"figure-{number + 1}",
        "title": said(figure.labels),
        "rows": [named(layout.rows, row) for row in figure.rows],
        "columns": [named(layout.columns, column) for column in figure.columns],
        "rowAxis": name_of(layout.rows or ""),
        "columnAxis": name_of(layout.columns or ""),
        "curveAxis": name_of(layout.curves or ""),
        "curves": [
            {"name": named(layout.curves, curve), "colour": colours[curve], "dash": DASHES[dashes[curve]]}
            for curve in figure.curves
        ],
        "panels": [
            {
                "row": figure.rows.index(panel.row),
                "column": figure.columns.index(panel.column),
                "lines": [_line(line, figure.curves.index(line.label)) for line in panel.lines],
            }
            for panel in figure.panels
        ],
        "downloads": [
            {"name": file.name, "kind": file.suffix[1:].upper(), "data": base64.b64encode(file.read_bytes()).decode()}
            for file in files
        ],
    }


def _line(line: Line, curve: int) -> dict[str, Any]:
    final = line.final
    return {
        "curve": curve,
        "setting": said(line.setting),
        "missing": missing(line) if line.holes or final is None else None,
        "holes": [hole.seed for hole in line.holes],
        "final": None if final is None else [_short(part) for part in final],
        "judged": line.judged_by,
        "collapsed": line.collapsed,
        "majority": line.majority,
        "runs": [run.id for run in line.runs],
        "curvesOf": {metric: _curves(line, metric) for metric in METRICS},
    }


def _curves(line: Line, metric: str) -> dict[str, Any]:
    """Return the mean of a line with its band, and each of its seeds."""
    factor = 100 if metric == "accuracy" else 1
    found = line.mean(metric)
    mean = None
    if found is not None:
        rounds, values, spread = found
        edges = [band(*both, metric) for both in zip(values, spread, strict=True)]
        mean = {
            "x": rounds,
            "y": _scaled(values, factor),
            "low": _scaled([low for low, _ in edges], factor),
            "high": _scaled([high for _, high in edges], factor),
        }
    seeds = [
        {"seed": seed, "x": [number for number, _ in points], "y": _scaled([value for _, value in points], factor)}
        for seed, points in line.by_seed(metric).items()
    ]
    return {"mean": mean, "seeds": seeds}


def _scaled(values: list[float], factor: int) -> list[Any]:
    return [_short(factor * value) for value in values]


def _tuning(results: Results) -> list[dict[str, Any]]:
    """Return a heat map per set of tuned settings: the mean validation of each setting in each cell."""
    if not results.tuned:
        return []
    cells: dict[tuple[tuple[str, str], ...], dict[tuple[tuple[str, str], ...], list[RunResult]]] = {}
    for run in results.runs:
        cells.setdefault(tuple(run.cell.items()), {}).setdefault(tuple(run.setting.items()), []).append(run)
    maps: dict[tuple[str, ...], dict[str, Any]] = {}
    for cell, settings in cells.items():
        names = tuple(said(dict(setting)) for setting in settings)
        found = maps.setdefault(names, {"settings": list(names), "cells": []})
        found["cells"].append(
            {
                "name": said({axis: label for axis, label in cell if len(results.axes[axis]) > 1}),
                "values": [_validated(runs) for runs in settings.values()],
            }
        )
    for found in maps.values():
        found["labelled"] = any(value.get("labelled") for cell in found["cells"] for value in cell["values"])
    return [found for names, found in maps.items() if len(names) > 1]


def _validated(runs: list[RunResult]) -> dict[str, Any]:
    """Return the mean validation accuracy of a setting at the last round that all of its seeds came to."""
    failed = [run.error for run in runs if run.status == "failed"]
    if failed:
        return {"value": None, "error": failed[0]}
    scores = []
    for run in runs:
        by_round = {int(number): score for number, score in run.source.scores().items()}
        if run.final:
            by_round[int(run.spec["run"]["rounds"])] = run.final
        scores.append(by_round)
    common = set.intersection(*(set(each) for each in scores))
    if not common:
        return {"value": None, "error": "not played yet"}
    last = max(common)
    found = [each[last].get("validation_accuracy", each[last]["validation_loss"]) for each in scores]
    known = [value for value in found if value is not None]
    value = sum(known) / len(known) if len(known) == len(found) else None
    labelled = "validation_accuracy" in scores[0][last]
    facts = {"round": last, "labelled": labelled, "chosen": bool(runs[0].chosen)}
    return {"value": _short(value), "error": None if value is not None else "its loss is not finite", **facts}


def _run(run: RunResult) -> dict[str, Any]:
    kept = ("test_accuracy", "test_loss", "validation_accuracy", "best_accuracy", "collapsed", "majority_rounds")
    return {
        "id": run.id,
        "labels": {axis: name_of(label) for axis, label in (run.cell | run.setting).items()},
        "seed": run.seed,
        "status": run.status,
        "error": run.error,
        "chosen": run.chosen,
        "seconds": run.seconds,
        "spec": _plain(run.spec),
        **{name: _short(run.final.get(name)) for name in kept},
    }


def _short(value: Any) -> Any:
    """Return a number with no more digits than a picture shows; what is not finite is None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """Return a spec as JSON holds it, whatever options parts of one's own have."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _stem(figure: Figure, number: int, count: int) -> str:
    words = [f"{axis.rpartition('.')[2]}-{label}" for axis, label in figure.labels.items()]
    name = "_".join(words) if words else "figure"
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return kept if count == 1 else f"{number + 1:02d}_{kept}"
