"""Runs side by side, as a table."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from demoa.results import RunFolder
from demoa.results.folder import Record


def compare_runs(folders: list[Path], console: Console) -> None:
    """Print one line per run: what it was, and how it ended."""
    table = Table(box=None, pad_edge=False)
    for name in ("folder", "algorithm", "attack"):
        table.add_column(name, no_wrap=True)
    for name in ("majority", "best", "test"):
        table.add_column(name, justify="right", no_wrap=True)
    for path in folders:
        folder = RunFolder(path)
        _, spec = folder.spec()
        final, records = folder.final(), folder.records()
        best, end = _figures(records, final)
        table.add_row(
            path.name,
            spec["algorithm"]["name"],
            spec["attack"]["name"],
            str(sum(record["majority"] for record in records)),
            best,
            f"{end} !" if final and final["collapsed"] else end,
        )
    console.print(table)
    console.print("majority: rounds with more Byzantine than honest clients.")
    console.print("!: ended 20 points or more below its best.")


def _figures(records: list[Record], final: Record | None) -> tuple[str, str]:
    """Return the best figure on the way, and the one at the end: accuracy, or loss where there is none."""
    accuracies = [record["accuracy"] for record in records if "accuracy" in record]
    losses = [record["loss"] for record in records if record.get("loss") is not None]
    best = f"{max(accuracies):.2%}" if accuracies else f"{min(losses):.4g}" if losses else "-"
    if final is None:
        return best, "not finished"
    if "test_accuracy" in final:
        return best, f"{final['test_accuracy']:.2%}"
    return best, "infinite" if final["test_loss"] is None else f"{final['test_loss']:.4g}"
