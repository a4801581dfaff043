"""`demoa run`: one run, or several side by side, shown live."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from rich.console import Console

from demoa.cli.interrupts import interrupts_held_back
from demoa.cli.progress import Lines, live_lines
from demoa.core.errors import ConfigError, DemoaError, first_line
from demoa.core.memory import keep_memory
from demoa.experiment.build import Experiment, Loaded, make_experiment
from demoa.experiment.load import read_spec, spec_from
from demoa.experiment.run import begin, play, take_up
from demoa.results import RunFolder
from demoa.results.folder import Record
from demoa.results.reader import runs_in
from demoa.results.trackers import Tracker, check_tracker, make_tracker


@dataclass(frozen=True)
class Job:
    """A run that is ready to be played."""

    folder: RunFolder
    experiment: Experiment
    is_new: bool


def new_jobs(spec: Path | None, settings: Sequence[str], variations: Sequence[str], out: Path) -> list[Job]:
    """Return the runs of a spec: one, in the folder, or one per combination of varied values, in folders inside it."""
    axes = [_axis(variation) for variation in variations]
    jobs = []
    loaded: Loaded = {}
    for chosen in product(*axes):
        path = out / "-".join(_slug(setting) for setting in chosen) if chosen else out
        experiment = make_experiment(read_spec(spec, [*settings, *chosen]), loaded)
        jobs.append(Job(RunFolder(path), experiment, is_new=True))
    if len({job.folder.path for job in jobs}) < len(jobs):
        raise ConfigError("--vary names the same run twice; give each value once")
    return jobs


def resumed_jobs(path: Path) -> list[Job]:
    """Return the run in a folder, or the runs in the folders inside it."""
    jobs = []
    loaded: Loaded = {}
    for each in runs_in(path) or [path]:
        folder = RunFolder(each)
        jobs.append(Job(folder, make_experiment(spec_from(folder.spec()[1]), loaded), is_new=False))
    return jobs


def play_jobs(jobs: Sequence[Job], trackers: Sequence[str], console: Console) -> None:
    """Play runs in turns of one round each, so that they go on side by side.

    A run that fails is left where it is, and its error is raised when the others are through. Ctrl-C lets the round
    that is under way end, and saves all runs.
    """
    keep_memory()
    for name in trackers:
        check_tracker(name)
    for job in jobs:
        if job.is_new:
            job.folder.check_free()
    failures: list[DemoaError] = []
    turns: list[Turn] = []
    with live_lines(console) as lines, interrupts_held_back() as interrupted:
        try:
            for job in jobs:
                name = job.folder.path.name if len(jobs) > 1 else job.experiment.spec.algorithm.name
                turns.append(Turn(job, trackers, lines, name, console))
            for turn in turns:
                turn.begin()
            while any(not turn.is_over for turn in turns):
                for turn in turns:
                    if interrupted():
                        raise KeyboardInterrupt
                    try:
                        turn.play_round()
                    except DemoaError as error:
                        failures.append(error)
        finally:
            for turn in turns:
                turn.close()
    if failures:
        raise failures[0]


class Turn:
    """A run among others that go on at the same time."""

    def __init__(self, job: Job, trackers: Sequence[str], lines: Lines, name: str, console: Console) -> None:
        """Take the run up if it has begun, and call its audience together; of a new one nothing is written yet."""
        self._job = job
        self._console = console
        self._line = lines.add(name, job.experiment.spec.run.rounds)
        before: list[Record] = []
        if not job.is_new:
            take_up(job.experiment, job.folder)
            before = job.folder.records()
            self._line.go_on(before)
        path, spec = job.folder.path, job.experiment.resolved
        self._watchers = [make_tracker(track, path, spec, len(before)) for track in trackers]
        self._rounds: Generator[Record, None, None] | None = None
        self.is_over = False

    def begin(self) -> None:
        """Make the folder of a new run ready."""
        if self._job.is_new:
            begin(self._job.experiment, self._job.folder)
        self._rounds = play(self._job.experiment, self._job.folder)

    def play_round(self) -> None:
        """Play one more round, if there is one."""
        if self.is_over or self._rounds is None:
            return
        try:
            record = next(self._rounds, None)
        except BaseException:
            self.is_over = True
            raise
        if record is None:
            self.is_over = True
            return
        self._line.show(record)
        for watcher in list(self._watchers):
            self._tell(watcher, partial(watcher.log, record))

    def close(self) -> None:
        """Save the run where it is, and let the audience go."""
        if self._rounds is not None:
            self._rounds.close()
        final = self._job.folder.final()
        for watcher in list(self._watchers):
            self._tell(watcher, partial(watcher.close, final))

    def _tell(self, watcher: Tracker, message: Callable[[], None]) -> None:
        try:
            message()
        except Exception as error:  # training does not stop because its audience left
            said = f"{type(watcher).__name__} stopped listening: {first_line(error)}"
            self._console.print(said, style="yellow", markup=False)
            self._watchers.remove(watcher)


def _axis(variation: str) -> list[str]:
    key, equals, values = variation.partition("=")
    if not equals or not all(values.split(",")):
        raise ConfigError(f"--vary takes section.key=value,value,..., such as attack.name=alie,ipm, got {variation!r}")
    return [f"{key}={value}" for value in values.split(",")]


def _slug(setting: str) -> str:
    """Return a varied setting as part of a folder's name.

    >>> _slug("attack.name=alie"), _slug("sampling.p=0.1")
    ('alie', 'p0.1')
    """
    key, _, value = setting.partition("=")
    last = key.rpartition(".")[2]
    kept = "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in value)
    return kept if last in ("name", "rule", "model", "dataset", "partition") else f"{last}{kept}"
