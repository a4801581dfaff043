"""A live line per run: round, accuracy, majority rounds so far, time left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from demoa.results.folder import Record


class Lines:
    """The lines of some runs."""

    def __init__(self, progress: Progress) -> None:
        """Take the display that they are part of."""
        self._progress = progress

    def add(self, name: str, rounds: int) -> TaskLine:
        """Add the line of a run."""
        return TaskLine(self._progress, name, rounds)


class TaskLine:
    """The line of one run."""

    def __init__(self, progress: Progress, name: str, rounds: int) -> None:
        """Show that nothing is played yet."""
        self._progress = progress
        self._majority = 0
        self._task = progress.add_task(name, total=rounds, shown="", majority=0)

    def go_on(self, before: Sequence[Record]) -> None:
        """Show what was played before."""
        self._majority = sum(record["majority"] for record in before)
        self._progress.update(self._task, completed=len(before), majority=self._majority)

    def show(self, record: Record) -> None:
        """Show what the record of a round says."""
        self._majority += record["majority"]
        self._progress.update(self._task, completed=record["round"], majority=self._majority)
        if "accuracy" in record:
            self._progress.update(self._task, shown=f"accuracy {record['accuracy']:.1%}")
        elif record.get("loss") is not None:
            self._progress.update(self._task, shown=f"loss {record['loss']:.3g}")


@contextmanager
def live_lines(console: Console) -> Iterator[Lines]:
    """Show the progress of runs inside the block."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[shown]:<15} majority rounds {task.fields[majority]:>3}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield Lines(progress)
