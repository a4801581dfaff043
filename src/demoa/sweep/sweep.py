"""The work of a study: what is left of it, longest first, on an engine, until nothing is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demoa.core.errors import StoreError
from demoa.experiment.spec import run_id
from demoa.results import archive
from demoa.results.folder import Record
from demoa.results.run import RunResult
from demoa.results.study import StudyFolder
from demoa.sweep.engines import Engine
from demoa.sweep.grid import Cell, PlannedRun
from demoa.sweep.jobs import Ended, Job, Progress
from demoa.sweep.study import Study
from demoa.sweep.tuning import Seen, Stage, rungs, stage

WAIT_SECONDS = 0.25


@dataclass(frozen=True)
class Status:
    """How far a sweep is: counts of runs, what is under way, and how many seconds are left, if that can be told."""

    done: int
    failed: int
    left_out: int
    total: int
    running: tuple[tuple[str, PlannedRun, int, Progress | None], ...]
    seconds_left: float | None


class Sweep:
    """A study and its folder, at work."""

    def __init__(
        self, study: Study, cells: tuple[Cell, ...], folder: StudyFolder, *, keep_states: bool = False
    ) -> None:
        """Take a study, its cells, and the folder that holds it (see `open`)."""
        self._study = study
        self._cells = cells
        self._folder = folder
        self._keep_states = keep_states
        self._place = {run.id: place for place, cell in enumerate(cells) for run in cell.runs}
        self._runs = {run.id: run for cell in cells for run in cell.runs}
        self._names = {
            run.id: " ".join([*cell.labels.values(), *_tuned(setting.labels), f"seed {run.seed}"])
            for cell in cells
            for setting in cell.settings
            for run in setting.runs
        }
        self._seen: dict[str, Seen] = {}
        self._stages: dict[int, Stage] = {}
        self._running: dict[str, tuple[int, Progress | None]] = {}
        self._rates: dict[str, list[float]] = {}
        self._known_rates: dict[str, list[float]] = {}
        self._stopping = False
        self._no_room: str | None = None

    def open(self, *, retry: bool = False, known: Sequence[Path] = ()) -> None:
        """Begin the study in its folder, or take it up there.

        Args:
            retry: Give runs that failed another try.
            known: Files that `demoa export` made: their runs are not played again.
        """
        self._folder.open(described(self._study, self._cells))
        for path in known:
            archive.restore(path, self._folder, self._can_use)
        for run in self._runs.values():
            if retry:
                self._folder.run(run.id).forgive()
            self._look_at(run)
            if run.rounds in self._seen[run.id].scores and not self._keep_states:
                self._folder.run(run.id).drop_state()  # it was killed between its last two steps
        for place in range(len(self._cells)):
            self._settle(place)
        for event in self._folder.journal():
            if event["event"] == "ended" and event["run"] in self._runs:
                rates = self._known_rates if event["outcome"] == "known" else self._rates
                _note_rate(rates, self._runs[event["run"]], event["rounds"], event["seconds"])

    def covered(self, known: Path) -> int:
        """Return how many runs of a file this study could use."""
        return sum(self._can_use(run) for run in archive.read(known).runs if run.spec and run.status != "failed")

    def _can_use(self, found: RunResult) -> bool:
        """Say whether a run of another folder is one of this study; to be through, it must have paused as here."""
        run = self._runs.get(found.id)
        if run is None or run_id(found.spec) != run.id:
            return False
        pauses = rungs(self._study.tune, len(self._cells[self._place[run.id]].settings), run.rounds)
        return not found.final or all(str(pause.rounds) in found.source.scores() for pause in pauses)

    def play(self, engine: Engine) -> Iterator[None]:
        """Do all that is left; yields now and then, for whoever shows how far it is."""
        self._fill(engine)
        while self._running:
            for event in engine.wait(WAIT_SECONDS):
                if isinstance(event, Ended):
                    self._end(event)
                    if event.outcome == "no room":
                        self._no_room = event.error
                        self.stop(engine)
                else:
                    self._running[event.id] = (self._running[event.id][0], event)
            self._fill(engine)
            yield
        if self._no_room is not None:
            raise StoreError(self._no_room)

    def _fill(self, engine: Engine) -> None:
        """Begin as much as there are free slots."""
        free = engine.slots - len(self._running)
        if free and not self._stopping:
            for run, until in self._queue()[:free]:
                self._begin(engine, run, until)

    def stop(self, engine: Engine) -> None:
        """Begin nothing more, and let what is under way stop after its round."""
        self._stopping = True
        engine.stop()

    def status(self, slots: int) -> Status:
        """Return how far the sweep is."""
        left_out = {run.id for found in self._stages.values() for setting in found.dropped for run in setting.runs}
        failed = {identity for identity, seen in self._seen.items() if seen.failed}
        done = {identity for identity, seen in self._seen.items() if self._runs[identity].rounds in seen.scores}
        return Status(
            done=len(done),
            failed=len(failed),
            left_out=len(left_out - done - failed),
            total=len(self._runs),
            running=tuple(
                (self._names[identity], self._runs[identity], until, progress)
                for identity, (until, progress) in self._running.items()
            ),
            seconds_left=self._seconds_left(slots),
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be played."""
        return not any(found.pending for found in self._stages.values())

    def failures(self) -> list[tuple[str, str]]:
        """Return the runs that failed, by name, and why."""
        failed = [identity for identity, seen in self._seen.items() if seen.failed]
        return [(self._names[identity], self._folder.run(identity).error() or "") for identity in failed]

    def _queue(self) -> list[tuple[PlannedRun, int]]:
        """Return what can be begun now: longest runs first, and of equal ones those of the cell that comes first.

        A run that has paused is as long as it was, so that cells are brought to their end one after the other.
        """
        waiting = [
            (run, until)
            for found in self._stages.values()
            for run, until in found.pending
            if run.id not in self._running
        ]
        return sorted(waiting, key=lambda job: -job[0].rounds * job[0].effort * (self._rate(job[0]) or 1.0))

    def _work(self, run: PlannedRun, until: int) -> float:
        """Return about how many seconds it takes to play a run up to a round; in other units if none was measured."""
        before = max((rounds for rounds in self._seen[run.id].scores if rounds < until), default=0)
        return (until - before) * run.effort * (self._rate(run) or 1.0)

    def _rate(self, run: PlannedRun) -> float | None:
        """Return how many seconds an example takes in runs of this kind: here, or until that is known, elsewhere."""
        spent = self._rates.get(_kind(run)) or self._known_rates.get(_kind(run))
        return spent[0] / spent[1] if spent else None

    def _seconds_left(self, slots: int) -> float | None:
        total = 0.0
        for place, found in self._stages.items():
            run = self._cells[place].runs[0]
            if not found.pending:
                continue
            rate = self._rate(run)
            if rate is None:
                return None
            total += found.later * run.effort * rate
            for pending, until in found.pending:
                whole = self._work(pending, until)
                progress = self._running.get(pending.id, (0, None))[1]
                total += whole if progress is None else max(0, until - progress.round) * run.effort * rate
        return total / max(1, min(slots, sum(len(found.pending) for found in self._stages.values())))

    def _begin(self, engine: Engine, run: PlannedRun, until: int) -> None:
        folder = self._folder.run(run.id).path.resolve()
        self._running[run.id] = (until, None)
        self._log({"event": "began", "run": run.id, "until": until})
        engine.start(Job(run.id, folder, run.spec, until, self._keep_states))

    def _end(self, event: Ended) -> None:
        until, _ = self._running.pop(event.id)
        run = self._runs[event.id]
        _note_rate(self._rates, run, event.rounds, event.seconds)
        facts = asdict(event)
        self._log({"event": "ended", "run": facts.pop("id"), **facts})
        self._look_at(run)
        self._settle(self._place[run.id])
        if event.outcome == "done" and (run, until) in self._stages[self._place[run.id]].pending:
            path = self._folder.run(run.id).path
            raise StoreError(f"{path} lacks what validation said at round {until}; delete that folder, then go on")

    def _look_at(self, run: PlannedRun) -> None:
        folder = self._folder.run(run.id)
        scores = {int(rounds): score for rounds, score in folder.scores().items()}
        final = folder.final()
        if final is not None:
            scores[run.rounds] = final
        self._seen[run.id] = Seen(failed=final is None and folder.error() is not None, scores=scores)

    def _settle(self, place: int) -> None:
        """Find out how far a cell is; what does not go on needs no state, and a choice is written down."""
        cell = self._cells[place]
        found = self._stages[place] = stage(self._study.tune, cell, lambda run: self._seen[run.id])
        if not self._keep_states:
            for setting in found.dropped:
                for run in setting.runs:
                    self._folder.run(run.id).drop_state()
        before = self._folder.chosen()
        after = {cell: setting for cell, setting in before.items() if cell != place}
        if found.chosen is not None:
            after[place] = cell.settings.index(found.chosen)
        if after != before:
            self._folder.choose(after)

    def _log(self, event: Record) -> None:
        self._folder.log({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **event})


def described(study: Study, cells: tuple[Cell, ...]) -> dict[str, Any]:
    """Return a study as its folder holds it."""
    tuned = [axis.name for axis in (*study.tune.over, *(axis for extra in study.tune.extra for axis in extra.over))]
    return {
        "id": study.identity,
        "title": study.title,
        "note": study.note,
        "scaled": list(study.scaled),
        "scale": study.scale,
        "report": study.report,
        "axes": {axis.name: [choice.label for choice in axis.choices] for axis in study.axes},
        "seeds": list(study.seeds),
        "tune": {"method": study.tune.method, "axes": list(dict.fromkeys(tuned))},
        "cells": [
            {
                "labels": cell.labels,
                "settings": [
                    {"labels": setting.labels, "runs": {str(run.seed): run.id for run in setting.runs}}
                    for setting in cell.settings
                ],
            }
            for cell in cells
        ],
    }


def _tuned(labels: dict[str, str]) -> list[str]:
    return [f"{axis.rpartition('.')[2]} {label}" for axis, label in labels.items()]


def _note_rate(rates: dict[str, list[float]], run: PlannedRun, rounds: int, seconds: float) -> None:
    if rounds:
        spent = rates.setdefault(_kind(run), [0.0, 0.0])
        spent[0] += seconds
        spent[1] += rounds * run.effort


def _kind(run: PlannedRun) -> str:
    task, how = run.spec["task"], run.spec["run"]
    return repr((task["dataset"], task["model"], how["threads"], how.get("precision")))
