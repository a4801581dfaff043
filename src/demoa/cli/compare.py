"""Runs side by side, as a table."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from demoa.results import RunFolder


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
        curve = [record["accuracy"] for record in records if "accuracy" in record]
        end = "not finished" if final is None else f"{final['test_accuracy']:.2%}"
        table.add_row(
            path.name,
            spec["algorithm"]["name"],
            spec["attack"]["name"],
            str(sum(record["majority"] for record in records)),
            f"{max(curve):.2%}" if curve else "-",
            f"{end} !" if final and final["collapsed"] else end,
        )
    console.print(table)
    console.print("majority: rounds in which most clients were Byzantine.  !: ended 20 points or more below its best.")
