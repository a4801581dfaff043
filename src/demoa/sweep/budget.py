"""A study made smaller for a small machine: first its tuning, then its seeds, then its rounds; and said so."""

from __future__ import annotations

import copy
import math
import re
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from demoa.core.errors import ConfigError
from demoa.core.torch_threads import use_threads
from demoa.experiment.build import Loaded, make_experiment
from demoa.experiment.load import assign, spec_from
from demoa.sweep.grid import Cell, PlannedRun
from demoa.sweep.study import Study, Tune
from demoa.sweep.tuning import rungs

LEAST_ROUNDS = 10
"""No budget makes runs shorter than that."""
PROBE_ROUNDS = 8
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Scale:
    """What a study was made of its full size: how it is tuned, over how many seeds, for how many rounds."""

    budget: str
    method: str
    seeds: int
    rounds: int

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


def parse_budget(text: str) -> tuple[float | None, float | None]:
    """Return a budget as a share of the whole work, or as seconds.

    >>> parse_budget("10%"), parse_budget("1.5h")
    ((0.1, None), (None, 5400.0))
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*([%smhd])\s*", text)
    try:
        number = float(found[1]) if found else 0.0
    except ValueError:
        number = 0.0
    if not found or number <= 0:
        raise ConfigError(f"--budget must be a share of the work or a time, such as 10% or 2h, got {text!r}")
    return (number / 100, None) if found[2] == "%" else (None, number * UNITS[found[2]])


def find_scale(study: Study, cells: tuple[Cell, ...], budget: str, slots: int) -> Scale:
    """Return the largest size of a study that fits a budget, or the smallest there is."""
    share, seconds = parse_budget(budget)
    for axis in study.axes:
        if any(key in ("run", "run.rounds", "run.eval_every") for choice in axis.choices for key in choice.settings):
            raise ConfigError(f"--budget cannot scale a study that compares {axis.name}; leave one of them out")
    full = Scale(budget, study.tune.method, len(study.seeds), _rounds(cells))
    if seconds is not None:
        share = seconds / estimated_seconds(study.tune, cells, slots)
    assert share is not None
    goal = share * _work(study.tune, cells, full)
    tries = [full, replace(full, method="halving")]
    tries += [replace(tries[-1], seeds=seeds) for seeds in range(len(study.seeds) - 1, 0, -1)]
    for scale in tries:
        if _work(study.tune, cells, scale) <= goal:
            return scale
    smallest = tries[-1]
    rounds = smallest.rounds
    while rounds > LEAST_ROUNDS and _work(study.tune, cells, replace(smallest, rounds=rounds)) > goal:
        rounds -= max(1, rounds // 100)
    return replace(smallest, rounds=max(rounds, min(LEAST_ROUNDS, smallest.rounds)))


def scaled(study: Study, cells: tuple[Cell, ...], scale: Scale) -> Study:
    """Return a study at another size, which says what is smaller."""
    rounds, said = _rounds(cells), []
    spec = copy.deepcopy(study.spec)
    tune = _tune_at(study.tune, scale, rounds)
    pauses = any(rungs(tune, len(cell.settings), scale.rounds) for cell in cells)
    if tune.method != study.tune.method and pauses:
        said.append("tuning by successive halving in place of the whole grid")
    if scale.seeds < len(study.seeds):
        said.append(f"{scale.seeds} of {len(study.seeds)} seeds")
    if scale.rounds < rounds:
        said.append(f"{scale.rounds} of {rounds} rounds")
        assign(spec, "run.rounds", scale.rounds)
        before = cells[0].runs[0].spec["run"]["eval_every"]
        assign(spec, "run.eval_every", max(1, round(before * scale.rounds / rounds)))
    return replace(study, spec=spec, seeds=study.seeds[: scale.seeds], tune=tune, scaled=tuple(said))


def _tune_at(tune: Tune, scale: Scale, rounds: int) -> Tune:
    """Return how a study is tuned at a size: pauses come earlier in shorter runs."""
    least = max(1, math.ceil(tune.least_rounds * scale.rounds / rounds))
    return replace(tune, method=scale.method, least_rounds=least)


def estimated_seconds(tune: Tune, cells: tuple[Cell, ...], slots: int) -> float:
    """Return about how long a study takes here, from a few rounds of one run of each kind."""
    rates: dict[str, float] = {}
    total = 0.0
    for cell in cells:
        run = cell.runs[0]
        kind = repr((run.spec["task"]["dataset"], run.spec["task"]["model"]))
        if kind not in rates:
            rates[kind] = _seconds_per_example(run)
        seeds = len(cell.settings[0].runs)
        total += rates[kind] * run.effort * _cell_rounds(tune, len(cell.settings), seeds, run.rounds)
    return total / slots


def _seconds_per_example(run: PlannedRun) -> float:
    loaded: Loaded = {}
    experiment = make_experiment(spec_from(run.spec), loaded)
    use_threads(experiment.spec.run.threads)
    experiment.federation.play()  # compiles, and may ask everyone
    clients, start = 0, time.perf_counter()
    for _ in range(PROBE_ROUNDS):
        clients += len(experiment.federation.play().sampled)
    spent = time.perf_counter() - start
    share = experiment.spec.clients.local_steps * experiment.spec.clients.batch_size
    return spent / (max(clients, 1) * share)


def _rounds(cells: tuple[Cell, ...]) -> int:
    return cells[0].runs[0].rounds  # a study that compares lengths is not scaled


def _work(tune: Tune, cells: tuple[Cell, ...], scale: Scale) -> float:
    """Return how many examples a study differentiates at a size."""
    tune = _tune_at(tune, scale, _rounds(cells))
    return sum(
        cell.runs[0].effort * _cell_rounds(tune, len(cell.settings), scale.seeds, scale.rounds) for cell in cells
    )


def _cell_rounds(tune: Tune, settings: int, seeds: int, rounds: int) -> int:
    """Return how many rounds all runs of a cell play together."""
    total, before, alive = 0, 0, settings
    for rung in rungs(tune, settings, rounds):
        total += alive * seeds * (rung.rounds - before)
        before, alive = rung.rounds, rung.keep
    return total + alive * seeds * (rounds - before)
