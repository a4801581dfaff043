"""A Ray cluster, or a Ray of this machine's own: the same jobs, in actors.

All machines need demoa installed, and the folder of the study under the same path.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from demoa.core.errors import ConfigError, first_line
from demoa.experiment.build import Loaded
from demoa.results import RunFolder
from demoa.sweep.engines.local import ONE_THREAD
from demoa.sweep.jobs import Ended, Event, Job, Progress, perform

try:
    import ray
except ImportError as error:  # pragma: no cover - what a user without the extra sees
    raise ConfigError("--engine ray needs Ray: pip install 'demoa[ray]'") from error


class RayEngine:
    """Actors, one per job at a time. RAY_ADDRESS says which cluster; without it, one is started here."""

    def __init__(self, slots: int | None) -> None:
        """Take how many jobs can be under way at once; None is one per core of the cluster."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # it would warn about GPUs, here of none
        options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if "RAY_ADDRESS" not in os.environ:
            options |= {"num_cpus": slots, "include_dashboard": False}
        path = os.pathsep.join(place for place in sys.path if place)
        try:
            ray.init(runtime_env={"env_vars": {**ONE_THREAD, "PYTHONPATH": path}}, **options)
        except Exception as error:  # whatever may be wrong with a cluster
            raise ConfigError(f"Ray cannot be used: {first_line(error)}") from error
        cores = ray.cluster_resources().get("CPU", 1)  # type: ignore[no-untyped-call]
        self.slots = slots or max(1, int(cores))
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Any, Job]] = {}

    def start(self, job: Job) -> None:
        """Begin a job in an idle actor, or in a new one."""
        # Two calls at once: one plays, the other answers questions.
        actor = self._idle.pop() if self._idle else _Player.options(max_concurrency=2).remote()  # type: ignore[attr-defined]
        self._busy[actor.play.remote(job)] = (actor, job)

    def wait(self, seconds: float) -> list[Event]:
        """Return what has happened, at the latest after so many seconds."""
        ready, under_way = ray.wait(list(self._busy), timeout=seconds)
        events: list[Event] = [self._ended(reference) for reference in ready]
        for reference in under_way:
            try:
                progress = ray.get(self._busy[reference][0].progress.remote(), timeout=1)
            except ray.exceptions.RayError:
                continue  # busy, or dead: then its job ends with an error
            if progress is not None and progress.id == self._busy[reference][1].id:
                events.append(progress)
        return events

    def _ended(self, reference: Any) -> Ended:
        actor, job = self._busy.pop(reference)
        try:
            ended: Ended = ray.get(reference)
        except ray.exceptions.RayError as error:
            line = f"its process was lost: {first_line(error)}"
            RunFolder(job.folder).fail(line, str(error))
            return Ended(job.id, "failed", line)
        self._idle.append(actor)
        return ended

    def stop(self) -> None:
        """Ask all jobs to stop after the round that they are in."""
        for actor, _ in self._busy.values():
            actor.stop.remote()

    def close(self) -> None:
        """Let all processes go."""
        ray.shutdown()


@ray.remote(num_cpus=1)
class _Player:
    """Does jobs, one after the other, and says how far it is."""

    def __init__(self) -> None:
        self._loaded: Loaded = {}
        self._progress: Progress | None = None
        self._stopped = False

    def play(self, job: Job) -> Ended:
        return perform(job, self._tell, lambda: self._stopped, self._loaded)

    def _tell(self, progress: Progress) -> None:
        self._progress = progress

    def progress(self) -> Progress | None:
        return self._progress

    def stop(self) -> None:
        self._stopped = True
