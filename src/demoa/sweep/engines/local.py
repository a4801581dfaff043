"""One process per core of this machine, each with one thread, kept for many jobs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess

from demoa.core.errors import StoreError
from demoa.experiment.build import Loaded
from demoa.results import RunFolder
from demoa.sweep.jobs import Ended, Event, Job, perform

SPAWN = multiprocessing.get_context("spawn")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class LocalEngine:
    """Processes on this machine. One that dies takes its run with it, as a failure, and is replaced."""

    def __init__(self, slots: int) -> None:
        """Take how many jobs can be under way at once; processes are started when they are needed."""
        self.slots = slots
        self._idle: list[_Process] = []
        self._busy: list[_Process] = []

    def start(self, job: Job) -> None:
        """Begin a job in an idle process, or in a new one."""
        self._idle = [process for process in self._idle if process.is_alive]
        process = self._idle.pop() if self._idle else _Process()
        process.begin(job)
        self._busy.append(process)

    def wait(self, seconds: float) -> list[Event]:
        """Return what has happened, at the latest after so many seconds."""
        ready = wait_for([process.connection for process in self._busy], seconds) if self._busy else []
        events: list[Event] = []
        for process in [process for process in self._busy if process.connection in ready]:
            event = process.receive()
            events.append(event)
            if isinstance(event, Ended):
                self._busy.remove(process)
                if process.is_alive:
                    self._idle.append(process)
        return events

    def stop(self) -> None:
        """Ask all jobs to stop after the round that they are in."""
        for process in self._busy:
            process.ask_to_stop()

    def close(self) -> None:
        """Let all processes go; what is under way is saved at the end of its round."""
        for process in (*self._idle, *self._busy):
            process.connection.close()
        for process in (*self._idle, *self._busy):
            process.join()
        self._idle, self._busy = [], []


class _Process:
    """A process, as its parent sees it."""

    def __init__(self) -> None:
        self.connection, there = SPAWN.Pipe()
        # Ctrl-C goes to all processes of a terminal: this one decides what it means, so the other is born deaf to it.
        with _environment(ONE_THREAD), _interrupts_blocked():
            self._process: BaseProcess = SPAWN.Process(target=_work, args=(there,), daemon=True)
            self._process.start()
        there.close()
        self._job: Job | None = None

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def begin(self, job: Job) -> None:
        self._job = job
        with contextlib.suppress(OSError):  # it died while it was idle: the answer will say so
            self.connection.send(job)

    def receive(self) -> Event:
        assert self._job is not None
        try:
            event: Event = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            line = f"its process {how}; is there enough memory?"
            with contextlib.suppress(StoreError):
                RunFolder(self._job.folder).fail(line, line)
            return Ended(self._job.id, "failed", line)
        return event

    def ask_to_stop(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.send(None)

    def join(self) -> None:
        self._process.join()


def _work(connection: Connection) -> None:
    """Do jobs as they come, until the parent hangs up; it may be killed at any time, and then hangs up as well."""
    loaded: Loaded = {}

    def tell(event: Event) -> None:
        with contextlib.suppress(OSError):
            connection.send(event)

    def stopped() -> bool:
        try:
            return connection.poll()  # a request to stop, or the end of the line
        except OSError:
            return True

    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            return
        if job is not None:  # else a request to stop that came after the end
            tell(perform(job, tell, stopped, loaded))


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold Ctrl-C back inside the block, and for good in the processes that are started there."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which lets Ctrl-C through again when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started inside the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
