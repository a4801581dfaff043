"""`demoa sweep`: a study at work, as a live table."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demoa.cli.interrupts import interrupts_held_back
from demoa.core.checks import whole_number
from demoa.core.errors import unknown_name
from demoa.core.threads import cores
from demoa.experiment.build import make_experiment
from demoa.experiment.load import spec_from
from demoa.results.study import StudyFolder
from demoa.sweep.budget import Scale, find_scale, scaled
from demoa.sweep.engines import Engine, LocalEngine
from demoa.sweep.grid import Cell, expand
from demoa.sweep.study import Study, read_study
from demoa.sweep.sweep import Status, Sweep

ENGINES = ("local", "ray")
LINE_SECONDS = 30
"""How often to say how far a sweep is where there is no terminal to draw on."""


def prepared(
    path: Path, settings: list[str], budget: str | None, out: Path, processes: int | None
) -> tuple[Study, tuple[Cell, ...]]:
    """Return the study in a file and its cells, made smaller for a budget, if one is given."""
    study = read_study(path, settings)
    cells = expand(study)
    if budget is None:
        return study, cells
    scale = _scale_before(out, budget) or find_scale(study, cells, budget, slots_for(processes, _specs(cells)))
    smaller = replace(scaled(study, cells, scale), scale=scale.plain())
    return smaller, expand(smaller)


def _scale_before(out: Path, budget: str) -> Scale | None:
    """Return the size that a study in a folder was given before; a time is measured only once."""
    if not (out / "study.json").exists():
        return None
    before = StudyFolder(out).content().get("scale")
    return Scale(**before) if before and before["budget"] == budget else None


def make_engine(name: str, slots: int, processes: int | None) -> Engine:
    """Return what the runs are played on."""
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    if name == "ray":
        from demoa.sweep.engines.ray import RayEngine

        return RayEngine(None if processes is None and "RAY_ADDRESS" in os.environ else slots)
    return LocalEngine(slots)


def _specs(cells: tuple[Cell, ...]) -> list[dict[str, Any]]:
    """Return a spec of each cell."""
    return [cell.runs[0].spec for cell in cells]


def slots_for(processes: int | None, specs: Iterable[dict[str, Any]]) -> int:
    """Return how many runs to play at once: as many as there are cores for their threads, if it is not said."""
    if processes is not None:
        return whole_number("--processes", processes, least=1)
    threads = max(int(spec["run"]["threads"]) for spec in specs)
    return max(1, cores() // threads)


def check_kinds(cells: tuple[Cell, ...]) -> None:
    """Build one run of each kind, so that a missing data set or device is said once, and not by every run."""
    kinds: dict[str, dict[str, Any]] = {}
    for spec in _specs(cells):
        kinds.setdefault(repr((spec["task"]["dataset"], spec["task"]["model"], spec["run"]["device"])), spec)
    for spec in kinds.values():
        make_experiment(spec_from(spec))


def play_sweep(sweep: Sweep, engine: Engine, console: Console) -> bool:
    """Play what is left, shown live; returns whether it came to its end. Ctrl-C saves, and it can go on later."""
    begun = time.monotonic()
    stopped = False
    show = _Board(console) if console.is_terminal else _Lines(console)
    with interrupts_held_back() as interrupted, show:
        for _ in sweep.play(engine):
            if interrupted() and not stopped:
                stopped = True
                sweep.stop(engine)
            show.update(sweep.status(engine.slots), time.monotonic() - begun, stopped)
    return sweep.is_over


class _Board:
    """A live table of what is done, running, failed and left."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4)

    def __enter__(self) -> _Board:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def update(self, status: Status, seconds: float, stopping: bool) -> None:
        """Show how far the sweep is."""
        table = Table(box=None, pad_edge=False, show_header=bool(status.running))
        for name in ("running", "round", "accuracy"):
            table.add_column(name, justify="left" if name == "running" else "right", no_wrap=True)
        for name, run, until, progress in status.running:
            played = "starts" if progress is None else f"{progress.round} of {until}"
            if until < run.rounds:
                played += f" ({run.rounds})"
            table.add_row(Text(name), played, _figure(progress))
        line = Text(_summary(status, seconds), style="bold")
        self._live.update(Group(line, table, Text("stopping after this round...") if stopping else ""))


class _Lines:
    """A line now and then, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said, self._stopping = 0.0, False

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def update(self, status: Status, seconds: float, stopping: bool) -> None:
        """Say how far the sweep is, if it was not said a moment ago."""
        if seconds - self._said > LINE_SECONDS or stopping > self._stopping:
            self._said, self._stopping = seconds, stopping
            self._console.print(_summary(status, seconds), soft_wrap=True, highlight=False, markup=False)


def _summary(status: Status, seconds: float) -> str:
    left = status.total - status.done - status.failed - status.left_out - len(status.running)
    parts = [f"{status.done} of {status.total} runs done", f"{len(status.running)} running", f"{left} waiting"]
    if status.left_out:
        parts.append(f"{status.left_out} dropped by halving")
    parts.append(f"{status.failed} failed")
    time_left = "time left: measuring" if status.seconds_left is None else f"{_clock(status.seconds_left)} left"
    return f"{', '.join(parts)}; {_clock(seconds)} so far, {time_left}"


def _figure(progress: object) -> str:
    accuracy, loss = getattr(progress, "accuracy", None), getattr(progress, "loss", None)
    if accuracy is not None:
        return f"{accuracy:.1%}"
    return "" if loss is None else f"loss {loss:.3g}"


def _clock(seconds: float) -> str:
    """Return a duration as people say it.

    >>> _clock(42), _clock(754), _clock(9000)
    ('42 s', '13 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def sweep_command(
    spec: Path,
    out: Path,
    *,
    settings: list[str],
    budget: str | None,
    processes: int | None,
    engine: str,
    retry: bool,
    known: list[Path],
    keep_states: bool,
    plan: bool,
    console: Console,
) -> int:
    """Play a study into a folder, or go on with it there; returns the exit code."""
    study, cells = prepared(spec, settings, budget, out, processes)
    slots = slots_for(processes, _specs(cells))
    _print_plan(study, cells, console)
    folder = StudyFolder(out)
    sweep = Sweep(study, cells, folder, keep_states=keep_states)
    for path in known:  # before anything is written
        said = f"{sweep.covered(path)} runs are known from {path}"
        console.print(said, soft_wrap=True, highlight=False, markup=False)
    if plan:
        return 0
    check_kinds(cells)
    made = make_engine(engine, slots, processes)
    try:
        sweep.open(retry=retry, known=known)
        ended = play_sweep(sweep, made, console)
    except KeyboardInterrupt:  # the second one: no more is shown, and what is under way still ends its round
        ended = False
    finally:
        made.close()
        folder.close()
    if not ended:
        print("demoa: stopped; the same command goes on with it", file=sys.stderr)
        return 130
    failures = sweep.failures()
    for name, error in failures[:10]:
        print(f"demoa: {name} failed: {error}", file=sys.stderr)
    if failures:
        print(f"demoa: {len(failures)} runs failed; try them again with --retry", file=sys.stderr)
    status = sweep.status(slots)
    dropped = f", {status.left_out} dropped by halving on the way" if status.left_out else ""
    console.print(
        f"{status.done} runs are through{dropped}. Read them: demoa report {out}", soft_wrap=True, markup=False
    )
    return 1 if failures else 0


def _print_plan(study: Study, cells: tuple[Cell, ...], console: Console) -> None:
    settings = sum(len(cell.settings) for cell in cells)
    runs = sum(len(cell.runs) for cell in cells)
    console.print(study.title, style="bold", markup=False)
    tuned = f", {settings} settings tuned by {study.tune.method}" if settings > len(cells) else ""
    console.print(f"{len(cells)} cells{tuned}, {len(study.seeds)} seeds: {runs} runs", highlight=False)
    for said in study.scaled:
        console.print(f"scaled: {said}", highlight=False)
