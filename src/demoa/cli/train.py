"""`demoa run`: one run, or several side by side, shown live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console

from demoa.cli.progress import live_lines
from demoa.core.errors import ConfigError
from demoa.experiment.build import Experiment, make_experiment
from demoa.experiment.load import read_spec, spec_from
from demoa.experiment.run import begin, play, take_up
from demoa.results import RunFolder
from demoa.results.trackers import check_tracker, make_tracker


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
    for chosen in product(*axes):
        path = out / "-".join(_slug(setting) for setting in chosen) if chosen else out
        experiment = make_experiment(read_spec(spec, [*settings, *chosen]))
        jobs.append(Job(RunFolder(path), experiment, is_new=True))
    if len({job.folder.path for job in jobs}) < len(jobs):
        raise ConfigError("--vary names the same run twice; give each value once")
    return jobs


def resumed_jobs(path: Path) -> list[Job]:
    """Return the run in a folder, or the runs in the folders inside it."""
    inside = sorted(found.parent for found in path.glob("*/spec.json"))
    folders = [path] if (path / "spec.json").exists() or not inside else inside
    jobs = []
    for each in folders:
        folder = RunFolder(each)
        jobs.append(Job(folder, make_experiment(spec_from(folder.spec()[1])), is_new=False))
    return jobs


def play_jobs(jobs: Sequence[Job], trackers: Sequence[str], console: Console) -> None:
    """Play runs in turns of one round each, so that they go on side by side; all are saved if one is interrupted."""
    for name in trackers:
        check_tracker(name)
    for job in jobs:
        (begin if job.is_new else take_up)(job.experiment, job.folder)
    with live_lines(console) as lines:
        under_way = []
        for job in jobs:
            done, rounds = job.experiment.federation.server.round, job.experiment.spec.run.rounds
            name = job.folder.path.name if len(jobs) > 1 else job.experiment.spec.algorithm.name
            watchers = [make_tracker(track, job.folder.path, *job.folder.spec(), done) for track in trackers]
            under_way.append((job, lines.add(name, rounds, done), watchers, play(job.experiment, job.folder)))
        try:
            left = list(under_way)
            while left:
                for turn in list(left):
                    _, line, watchers, rounds_left = turn
                    record = next(rounds_left, None)
                    if record is None:
                        left.remove(turn)
                        continue
                    line.show(record)
                    for watcher in list(watchers):
                        try:
                            watcher.log(record)
                        except Exception as error:  # training does not stop because its audience left
                            console.print(f"{type(watcher).__name__} stopped listening: {error}", style="yellow")
                            watchers.remove(watcher)
        finally:
            for job, _, watchers, rounds_left in under_way:
                rounds_left.close()
                for watcher in watchers:
                    watcher.close(job.folder.final())


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
