"""What a sweep needs of the machines that do its work."""

from __future__ import annotations

from typing import Protocol

from demoa.sweep.jobs import Event, Job


class Engine(Protocol):
    """Some processes, each with one job at a time."""

    slots: int
    """How many jobs can be under way at once."""

    def start(self, job: Job) -> None:
        """Begin a job; there must be a free slot."""

    def wait(self, seconds: float) -> list[Event]:
        """Return what has happened, at the latest after so many seconds. A job ends with exactly one Ended."""

    def stop(self) -> None:
        """Ask all jobs to stop after the round that they are in; they still end with an Ended."""

    def close(self) -> None:
        """Let all processes go."""
