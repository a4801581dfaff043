"""Runs of a study played once more, from nothing: are its figures those that come out?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError
from demoa.core.seeding import generator
from demoa.experiment.build import resolve
from demoa.experiment.load import spec_from
from demoa.experiment.spec import run_id
from demoa.results import Results, RunFolder, RunResult
from demoa.results.reader import FolderSource
from demoa.results.tables import judged
from demoa.sweep.engines import Engine
from demoa.sweep.jobs import Ended, Job
from demoa.sweep.sweep import WAIT_SECONDS


@dataclass(frozen=True)
class Outcome:
    """What came of a run that was played again.

    Attributes:
        run: The run, as the study has it.
        final: The final figures that came out; None if it failed.
        differs: What is not the same, to the last digit that the study holds.
        machines: On what it was played now.
        error: Why it failed.
    """

    run: RunResult
    final: dict[str, Any] | None
    differs: tuple[str, ...]
    machines: list[str] = field(default_factory=list)
    error: str | None = None


def drawn_runs(results: Results, cells: int, seed: int) -> list[RunResult]:
    """Return the runs that some cells are judged by; the cells are drawn at random among those that are through."""
    whole = [runs for runs in judged(results).values() if all(run.status == "done" for run in runs)]
    if len(whole) < cells:
        raise ConfigError(f"{cells} cells were asked for, and {len(whole)} are through; ask for fewer")
    places = generator(seed, "again").choice(len(whole), cells, replace=False)
    return [run for place in sorted(places) for run in whole[place]]


def play_again(runs: list[RunResult], folder: Path, engine: Engine) -> Iterator[Outcome]:
    """Play runs from nothing, each in a folder of its own, and yield what came of each."""
    waiting, running = list(runs), dict[str, RunResult]()
    while waiting or running:
        while waiting and len(running) < engine.slots:
            run = waiting.pop(0)
            running[run.id] = run
            until = int(run.spec["run"]["rounds"])
            engine.start(Job(run.id, (folder / run.id).resolve(), run.spec, until, keep_state=False))
        for event in engine.wait(WAIT_SECONDS):
            if isinstance(event, Ended):
                yield _outcome(running.pop(event.id), RunFolder(folder / event.id), event.error)


def check_same(runs: list[RunResult]) -> None:
    """Raise ConfigError if the spec of a run no longer means the run that the study has."""
    for run in runs:
        if run_id(resolve(spec_from(run.spec))) != run.id:
            raise ConfigError(f"the spec of run {run.id} means another run in this version of demoa")


def _outcome(run: RunResult, folder: RunFolder, error: str | None) -> Outcome:
    final = folder.final()
    if final is None:
        return Outcome(run, None, (), error=error or "it was stopped")
    differs = [name for name in {**run.final, **final} if run.final.get(name) != final.get(name)]
    now, before = FolderSource(folder).history().plain(), run.history.plain()
    # A study that was played by an older version may lack what is measured now.
    same = all(now["points"].get(metric) == points for metric, points in before["points"].items())
    if not same or now["majority"] != before["majority"]:
        differs.append("curves")
    return Outcome(run, final, tuple(differs), folder.machines())
