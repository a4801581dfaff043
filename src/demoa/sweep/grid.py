"""From a study to its runs: cells, the settings that are tried in each, and one run per seed of a setting."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from demoa.core.errors import ConfigError, DemoaError, first_line
from demoa.experiment.build import expected_clients, resolve
from demoa.experiment.load import assign, spec_from
from demoa.experiment.spec import run_id
from demoa.sweep.axes import Axis, combinations
from demoa.sweep.study import Study


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study.

    Attributes:
        id: The identity of its spec, which is also the name of its folder.
        seed: Which seed of its setting it is.
        spec: The whole spec, every default filled in.
        effort: Examples that are differentiated per round, on average: what runs of one model are compared by.
    """

    id: str
    seed: int
    spec: dict[str, Any]
    effort: float

    @property
    def rounds(self) -> int:
        """How long it is."""
        return int(self.spec["run"]["rounds"])


@dataclass(frozen=True)
class Setting:
    """One choice of all that is tuned, repeated over the seeds."""

    labels: dict[str, str]
    runs: tuple[PlannedRun, ...]


@dataclass(frozen=True)
class Cell:
    """One combination of all that is compared, and the settings that are tried in it."""

    labels: dict[str, str]
    settings: tuple[Setting, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """All runs of the cell."""
        return tuple(run for setting in self.settings for run in setting.runs)


def expand(study: Study) -> tuple[Cell, ...]:
    """Return the cells of a study; every spec is checked, and no run may be there twice."""
    cells = []
    for labels, settings in combinations(study.axes):
        if not any(all(labels[axis] in values for axis, values in entry.items()) for entry in study.exclude):
            tuned = _tuned_axes(study, labels)
            tries = [_setting(study, labels, chosen, settings | tried) for chosen, tried in combinations(tuned)]
            cells.append(Cell(labels, tuple(tries)))
    if not cells:
        raise ConfigError("the exclusions leave no run; leave some of them out")
    for cell in cells:
        if len({run.rounds for run in cell.runs}) > 1:
            raise ConfigError(
                "run.rounds cannot be tuned: settings are judged after as many rounds; compare it in axes"
            )
    _check_no_run_twice(cells)
    return tuple(cells)


def _tuned_axes(study: Study, labels: dict[str, str]) -> tuple[Axis, ...]:
    extra = [extra for extra in study.tune.extra if all(labels[axis] in found for axis, found in extra.where.items())]
    return (*study.tune.over, *(axis for found in extra for axis in found.over))


def _setting(study: Study, labels: dict[str, str], chosen: dict[str, str], settings: dict[str, Any]) -> Setting:
    table = copy.deepcopy(study.spec)
    try:
        # A name before its options: aggregation.rule = "krum", then aggregation.rule.m = 2.
        for key in sorted(settings, key=lambda key: key.count(".")):
            assign(table, key, settings[key])
        spec = spec_from(table)
        resolved = resolve(spec)
        effort = expected_clients(spec) * spec.clients.local_steps * spec.clients.batch_size
    except Exception as error:  # whatever a value of the wrong kind may lead to
        combination = ", ".join(f"{axis} = {value}" for axis, value in (labels | chosen).items())
        line = str(error) if isinstance(error, DemoaError) else f"{type(error).__name__}: {first_line(error)}"
        raise ConfigError(f"{line} (in {combination})" if combination else line) from error
    runs = []
    for seed in study.seeds:
        whole = copy.deepcopy(resolved)
        whole["run"]["seed"] = seed
        runs.append(PlannedRun(run_id(whole), seed, whole, effort))
    return Setting(chosen, tuple(runs))


def _check_no_run_twice(cells: list[Cell]) -> None:
    seen: dict[str, str] = {}
    for cell in cells:
        for setting in cell.settings:
            where = ", ".join(f"{axis} = {value}" for axis, value in (cell.labels | setting.labels).items())
            for run in setting.runs:
                if run.id in seen:
                    raise ConfigError(f"two runs are the same: {seen[run.id]}; and: {where}; leave one of them out")
                seen[run.id] = where
