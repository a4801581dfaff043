"""Final figures as Markdown, for pages that people write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from demoa.report.style import name_of, named, said
from demoa.results import Results
from demoa.results.pairs import ENOUGH_SEEDS, LEAST, Difference, differences
from demoa.results.tables import FALLS, PERCENT, Cell, FinalTable, Key, final_tables, judged, key_of, usual_metric

CALLED = 0.05
"""A difference is called one where p, corrected for all that stand in a table, is below that."""


def markdown_tables(
    results: Results, rows: Sequence[str], columns: str, metric: str, over: Sequence[str], way: str
) -> str:
    """Return the final figures of results: mean and standard deviation over seeds."""
    factor = 100.0 if metric in PERCENT else 1.0
    tables = list(final_tables(results, rows, columns, metric, over, way))
    most = max((cell.parts for table in tables for cell in table.cells.values()), default=1)
    parts = [_table(table, rows, columns, factor, len(results.seeds), most) for table in tables]
    unit = " in points" if metric in FALLS else " in %" if factor > 1 else ""
    together = f", {'averaged over' if way == 'mean' else 'the worst by'} {_names(over)}" if over else ""
    seeds = len(results.seeds)
    spread = f", mean ± standard deviation over {seeds} seeds" if seeds > 1 else ", one seed"
    name = name_of(metric)
    return "\n\n".join([*parts, f"{name[0].upper()}{name[1:]}{unit}{together}{spread}."])


def markdown_differences(results: Results, columns: str, against: str, by: Sequence[str], metric: str) -> str:
    """Return how the other columns differ from one, over pairs of runs (see `differences`)."""
    factor = 100.0 if metric in PERCENT else 1.0
    found = differences(results, columns, against, metric, by)
    groups = list(dict.fromkeys(tuple(each.group.values()) for each in found))
    labels = list(dict.fromkeys(each.label for each in found))
    by_place = {(tuple(each.group.values()), each.label): each for each in found}
    pairs = sorted({each.pairs for each in found})
    whole = len(results.seeds) >= ENOUGH_SEEDS
    units = "of whole seeds" if whole else "of single pairs, given these seeds"
    names = [named(columns, label) for label in labels]
    lines = [_line([_names(by) or "", *names]), "|---|" + "--:|" * len(names)]
    for group in groups:
        cells = [_gap(by_place.get((group, label)), factor, len(pairs) > 1) for label in labels]
        lines.append(_line([", ".join(map(name_of, group)) or "all", *cells]))
    count = f"over {pairs[0]} pairs of single runs each" if len(pairs) == 1 else "over pairs of single runs"
    tested = sum(each.pairs > 0 for each in found)
    holm = f" after Holm's correction for the {tested} differences of the table" if tested > 1 else ""
    tuned = " and in what was tuned for it" if _is_tuned(results, columns) else " alone"
    spread = f"; mean ± standard deviation over {len(results.seeds)} seeds" if len(results.seeds) > 1 else ""
    least = min((each.least for each in found if each.pairs > 0), default=1.0)
    too_few = f", which so few {'seeds' if whole else 'pairs'} cannot come to" if tested * least >= CALLED else ""
    caption = (
        f"Difference from {named(columns, against)} {count} with the same seed, that differ in {name_of(columns)}"
        f"{tuned}{spread}; p-values by exchange of signs {units}; bold where they are below {CALLED}{holm}{too_few}."
    )
    return "\n".join(lines) + f"\n\n{caption}"


def _is_tuned(results: Results, columns: str) -> bool:
    """Say whether runs that differ in one axis were played at several settings."""
    settings: dict[Key, set[Key]] = {}
    for run in results.runs:
        rest = key_of({axis: label for axis, label in run.cell.items() if axis != columns})
        settings.setdefault(rest, set()).add(key_of(run.setting))
    return any(len(found) > 1 for found in settings.values())


def markdown_settings(results: Results, rows: Sequence[str], columns: str) -> str:
    """Return which setting each cell was judged by."""
    chosen = {key: runs[0].setting for key, runs in judged(results).items()}
    parts = []
    for table in final_tables(results, rows, columns, usual_metric(results)):
        lines = _head(table, rows, columns)
        for row in table.rows:
            cells = []
            for column in table.columns:
                fixed = {axis: labels[0] for axis, labels in results.axes.items() if len(labels) == 1}
                place = fixed | table.labels | dict(zip(rows, row, strict=True)) | {columns: column}
                cells.append(said(chosen.get(key_of(place), {})) or "-")
            lines.append(_line([_row_name(row), *cells]))
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _table(table: FinalTable, rows: Sequence[str], columns: str, factor: float, seeds: int, most: int) -> str:
    lines = _head(table, rows, columns)
    for row in table.rows:
        cells = [table.cells.get((row, column)) for column in table.columns]
        lines.append(_line([_row_name(row), *(_cell(cell, factor, seeds, most) for cell in cells)]))
    return "\n".join(lines)


def _head(table: FinalTable, rows: Sequence[str], columns: str) -> list[str]:
    title = ", ".join(f"{name_of(axis)}: {name_of(label)}" for axis, label in table.labels.items())
    names = [named(columns, label) for label in table.columns]
    head = [_line([_names(rows), *names]), "|---|" + "--:|" * len(names)]
    return [*([title, ""] if title else []), *head]


def _cell(cell: Cell | None, factor: float, seeds: int, most: int) -> str:
    """Return mean and standard deviation in words, and what a reader must not miss; one seed has no spread."""
    if cell is None or not cell.values:
        return "-"
    found = factor * np.array(list(cell.values.values()))
    parts = [_number(found.mean(), factor) + (f" ± {_number(found.std(ddof=1), factor)}" if len(found) > 1 else "")]
    if len(found) < seeds:
        parts.append(f"{len(found)} of {seeds} seeds")
    if cell.parts < most:
        parts.append(f"{cell.parts} of {most} taken together")
    if cell.collapsed:
        parts.append(f"{cell.collapsed} of {cell.runs} collapsed")
    return ", ".join(parts)


def _gap(found: Difference | None, factor: float, with_pairs: bool) -> str:
    if found is None:
        return "-"
    if not found.pairs:
        return f"? (0 pairs, {found.missing} missing)"
    mark = "**" if found.corrected < CALLED else ""
    pairs = f", {found.pairs} pairs" if with_pairs else ""
    lost = f", {found.missing} missing" if found.missing else ""
    bound = "at most " if found.p == LEAST else ""
    spread = "" if found.spread is None else f" ± {_number(factor * found.spread, factor)}"
    mean = f"{mark}{_number(factor * found.mean, factor, '+')}{mark}"
    return f"{mean}{spread} (p-value {bound}{found.p:.2g}{pairs}{lost})"


def _number(value: float, factor: float, sign: str = "") -> str:
    """Return a number in words: percents with two digits behind the point, others with three in all."""
    return f"{value:{sign}.2f}" if factor > 1 else f"{value:{sign}.3g}"


def _names(axes: Sequence[str]) -> str:
    return ", ".join(map(name_of, axes))


def _row_name(row: tuple[str, ...]) -> str:
    return ", ".join(map(name_of, row))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
