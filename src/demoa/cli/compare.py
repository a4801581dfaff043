"""Runs side by side, as a table."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demoa.core.errors import ConfigError
from demoa.results import RunFolder
from demoa.results.folder import Record
from demoa.results.reader import FolderSource, runs_in, told_apart
from demoa.results.run import History


def run_folders(paths: list[Path]) -> list[Path]:
    """Return folders of runs: those given, and in place of one that holds folders of runs, these."""
    found: list[Path] = []
    for path in paths:
        runs = runs_in(path)
        if not runs:
            raise ConfigError(f"{path} holds no run: give folders of runs; for a study there is demoa table")
        found += runs
    return list({path.resolve(): path for path in found}.values())


def compare_runs(folders: list[Path], console: Console) -> None:
    """Print one line per run: what it was, and how it ended."""
    table = Table(box=None, pad_edge=False)
    for name in ("folder", "algorithm", "attack"):
        table.add_column(name, no_wrap=True)
    for name in ("majority", "best", "test"):
        table.add_column(name, justify="right", no_wrap=True)
    collapsed = False
    for path, shown in zip(folders, told_apart(folders), strict=True):
        folder = RunFolder(path)
        _, spec = folder.spec()
        final, history = folder.final(), FolderSource(folder).history()
        best, end = _figures(history, final)
        fell = bool(final and final["collapsed"])
        collapsed = collapsed or fell
        table.add_row(
            shown,
            spec["algorithm"]["name"],
            spec["attack"]["name"],
            str(len(history.majority)),
            best,
            f"{end} !" if fell else end,
        )
    console.print(table)
    console.print("majority: rounds with more Byzantine than honest clients.")
    if collapsed:
        console.print("!: ended 20 points or more below its best.")


def _figures(history: History, final: Record | None) -> tuple[str, str]:
    """Return the best figure on the way, and the one at the end: accuracy, or loss where there is none."""
    accuracies = [value for _, value in history.points.get("accuracy", [])]
    losses = [value for _, value in history.points.get("loss", []) if math.isfinite(value)]
    best = f"{max(accuracies):.2%}" if accuracies else f"{min(losses):.4g}" if losses else "-"
    if final is None:
        return best, "not finished"
    if "test_accuracy" in final:
        return best, f"{final['test_accuracy']:.2%}"
    return best, "infinite" if final["test_loss"] is None else f"{final['test_loss']:.4g}"
