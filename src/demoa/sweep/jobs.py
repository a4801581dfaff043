"""One piece of a study's work, done in a process of its own: a run, or the part of it up to a pause."""

from __future__ import annotations

import errno
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from demoa.core.errors import DemoaError, first_line
from demoa.core.memory import keep_memory
from demoa.experiment.build import Loaded, make_experiment
from demoa.experiment.load import spec_from
from demoa.experiment.run import begin, play, take_up
from demoa.results import RunFolder

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""What is wrong with a disk that no run can be written to."""
TELL_SECONDS = 0.2
"""How often to say how far a run is."""


@dataclass(frozen=True)
class Job:
    """A run that is to be played up to a round."""

    id: str
    folder: Path
    spec: dict[str, Any]
    until: int
    keep_state: bool


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    id: str
    round: int
    accuracy: float | None
    loss: float | None


@dataclass(frozen=True)
class Ended:
    """How a job ended.

    Attributes:
        id: The run.
        outcome: "done": up to the round that was asked for; "stopped": on request, saved; "failed"; "no room": nothing
            can be written.
        error: Why, in one line.
        rounds: How many rounds were played.
        seconds: How long that took, from the first round to the last figure.
        setup: How long it took to get there.
        cpu: The processor time of both.
    """

    id: str
    outcome: str
    error: str | None = None
    rounds: int = 0
    seconds: float = 0.0
    setup: float = 0.0
    cpu: float = 0.0


Event = Progress | Ended


def perform(job: Job, tell: Callable[[Progress], None], stopped: Callable[[], bool], loaded: Loaded) -> Ended:
    """Play a job, and say how it ended; whatever goes wrong is kept with the run, and raised to nobody.

    Args:
        job: What to do.
        tell: Is told how far the run is, now and then.
        stopped: Says whether to stop after the present round.
        loaded: Data sets that were loaded before; this one's is added.
    """
    keep_memory()
    folder = RunFolder(job.folder)
    clock = _Clock()
    try:
        try:
            job.folder.mkdir(parents=True, exist_ok=True)
            with _held(job.folder, stopped) as held:
                return _play(job, folder, tell, stopped, loaded, clock) if held else clock.ended(job.id, "stopped")
        except Exception as error:
            if _cannot_write(error):
                raise
            line = str(error) if isinstance(error, DemoaError) else f"{type(error).__name__}: {first_line(error)}"
            folder.fail(line, traceback.format_exc())
            return clock.ended(job.id, "failed", line)
    except Exception as error:  # the run did nothing wrong: there is no room for it
        return clock.ended(job.id, "no room", first_line(error))


@contextmanager
def _held(path: Path, stopped: Callable[[], bool]) -> Iterator[bool]:
    """Hold a run's folder, once a process of a sweep that was killed has let go of it; False if asked to stop."""
    lock = FileLock(path / ".lock")
    while not stopped():
        with suppress(Timeout):
            lock.acquire(timeout=1)
            break
    try:
        yield lock.is_locked
    finally:
        lock.release()


def _cannot_write(error: BaseException) -> bool:
    """Say whether an error is the disk's and not the run's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in NO_ROOM:
            return True
        cause = cause.__cause__
    return False


def _play(
    job: Job,
    folder: RunFolder,
    tell: Callable[[Progress], None],
    stopped: Callable[[], bool],
    loaded: Loaded,
    clock: _Clock,
) -> Ended:
    if folder.final() is not None:  # a process of a sweep that was killed brought it to its end
        clock.start()
        return _done(job, folder, clock)
    experiment = make_experiment(spec_from(job.spec), loaded)
    (take_up if folder.has_begun else begin)(experiment, folder)
    clock.start()
    told, shown = 0.0, {"accuracy": None, "loss": None}
    with closing(play(experiment, folder, job.until)) as rounds:
        for record in rounds:
            clock.rounds += 1
            shown |= {name: record[name] for name in shown if name in record}
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                tell(Progress(job.id, record["round"], **shown))
            if record["round"] < job.until and stopped():
                return clock.ended(job.id, "stopped")
    return _done(job, folder, clock)


def _done(job: Job, folder: RunFolder, clock: _Clock) -> Ended:
    if folder.final() is not None:
        folder.forgive()
        if not job.keep_state:
            folder.drop_state()
    return clock.ended(job.id, "done")


class _Clock:
    """Where the time of a job goes."""

    def __init__(self) -> None:
        self.rounds = 0
        self._begun = self._started = time.monotonic()
        self._cpu = time.process_time()

    def start(self) -> None:
        self._started = time.monotonic()

    def ended(self, identity: str, outcome: str, error: str | None = None) -> Ended:
        seconds, setup = time.monotonic() - self._started, self._started - self._begun
        cpu = time.process_time() - self._cpu
        return Ended(identity, outcome, error, self.rounds, round(seconds, 3), round(setup, 3), round(cpu, 3))
