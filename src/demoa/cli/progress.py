"""A live line for a run: round, accuracy, majority rounds so far, time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from demoa.experiment.build import Experiment
from demoa.results.folder import Record


@contextmanager
def watched(console: Console, experiment: Experiment) -> Iterator[Callable[[Record], None]]:
    """Show the progress of a run inside the block; gives what is to be called with each record."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("accuracy {task.fields[accuracy]}  majority rounds {task.fields[majority]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(
            experiment.spec.algorithm.name, total=experiment.spec.run.rounds, accuracy="  -  ", majority=0
        )
        majority = 0

        def watch(record: Record) -> None:
            nonlocal majority
            majority += record["majority"]
            progress.update(task, completed=record["round"], majority=majority)
            if "accuracy" in record:
                progress.update(task, accuracy=f"{record['accuracy']:.3f}")

        yield watch
