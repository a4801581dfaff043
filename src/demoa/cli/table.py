"""Final figures as Markdown, for pages that people write."""

from __future__ import annotations

from pathlib import Path

from demoa.report.style import name_of
from demoa.results import read_results
from demoa.results.tables import FinalTable, difference, final_tables

FACTORS = {"test_accuracy": 100.0}
"""What figures are multiplied by to be read: accuracies are in percent."""


def markdown_tables(path: Path, rows: str, columns: str, against: str | None, metric: str) -> str:
    """Return the tables of a study, and, against one of the columns, how the others differ from it."""
    results = read_results(path)
    factor = FACTORS.get(metric, 1.0)
    parts = [_table(one, rows, factor) for one in final_tables(results, rows, columns, metric)]
    if against is not None:
        others = [label for label in results.axes[columns] if label != against]
        lines = [f"| {name_of(columns)} | difference from {name_of(against)} | pairs | p |", "|---|--:|--:|--:|"]
        for label in others:
            found = difference(results, columns, label, against, metric)
            lines.append(f"| {name_of(label)} | {factor * found.mean:+.2f} | {found.pairs} | {found.p:.2g} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _table(table: FinalTable, rows: str, factor: float) -> str:
    lines = [f"| {name_of(rows)} | {' | '.join(map(name_of, table.columns))} |", "|---|" + "--:|" * len(table.columns)]
    for row in table.rows:
        cells = [table.cells.get((row, column)) for column in table.columns]
        said = ["-" if cell is None else cell.said(factor) for cell in cells]
        lines.append(f"| {name_of(row)} | {' | '.join(said)} |")
    title = ", ".join(f"{name_of(axis)}: {name_of(label)}" for axis, label in table.labels.items())
    return "\n".join([*([f"{title}", ""] if title else []), *lines])
