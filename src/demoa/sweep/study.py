"""A study: what its runs share, what it compares, over which seeds, and what it tunes."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demoa.core.checks import require, whole_number
from demoa.core.errors import ConfigError, unknown_name
from demoa.experiment.load import assign, parse_setting, read_toml
from demoa.results.folder import FORMAT
from demoa.results.labels import label
from demoa.results.run import METRICS
from demoa.sweep.axes import SECTIONS, Axis, flat, is_range, read_axes

KEYS = ("extends", "title", "note", "spec", "axes", "seeds", "exclude", "tune", "report")
METHODS = ("grid", "halving")
REPORT_KEYS = ("rows", "columns", "curves", "metrics")


@dataclass(frozen=True)
class Extra:
    """Axes that are tuned only where the labels of some other axes are among these."""

    where: dict[str, list[str]]
    over: tuple[Axis, ...]


@dataclass(frozen=True)
class Tune:
    """Settings that are chosen, not compared: in each cell, those with the best mean validation over the seeds.

    Attributes:
        method: "grid" plays every setting to its end; "halving" goes on only with the best 1 / eta of them at each of
            some pauses on the way.
        over: What is tuned everywhere.
        extra: What is tuned in some cells as well.
        eta: How much fewer settings go on after each pause, and how much longer they run.
        least_rounds: No pause comes before that round.
        keep: At least so many settings are played to their end, where the choice between them is made.
    """

    method: str = "grid"
    over: tuple[Axis, ...] = ()
    extra: tuple[Extra, ...] = ()
    eta: int = 3
    least_rounds: int = 1
    keep: int = 1


@dataclass(frozen=True)
class Study:
    """A grid of runs.

    Attributes:
        title: What it is called in the report.
        note: What a reader should know about it.
        spec: The table of what all runs share.
        axes: What is compared: each combination is a cell.
        seeds: What each cell is repeated over.
        exclude: Cells that are left out: those with all of these labels, by axis.
        tune: What is chosen in each cell.
        report: Which axes are the rows, columns and curves of the report's figures, and what they show.
        scaled: What was made smaller for a budget, in words.
        scale: The same in numbers.
    """

    title: str
    note: str
    spec: dict[str, Any]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    exclude: tuple[dict[str, list[str]], ...] = ()
    tune: Tune = field(default_factory=Tune)
    report: dict[str, Any] = field(default_factory=dict)
    scaled: tuple[str, ...] = ()
    scale: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """A hash of all that decides which runs there are and which are chosen; not of words and looks."""
        parts = dataclasses.asdict(self)
        kept = {name: parts[name] for name in ("spec", "axes", "seeds", "exclude", "tune")}
        return hashlib.sha256(json.dumps([FORMAT, kept], sort_keys=True).encode()).hexdigest()[:12]


def read_study(path: Path, settings: list[str] | None = None) -> Study:
    """Return the study in a TOML file, with `section.key=value` settings on top of its spec."""
    table = _with_parents(path, seen=())
    for key in table:
        if key not in KEYS:
            raise unknown_name(f"key in {path}", key, KEYS)
    spec = copy.deepcopy(table.get("spec", {}))
    if not isinstance(spec, dict):
        raise ConfigError(f"{path}: spec must be a table with the sections of a run, got {spec!r}")
    given = [parse_setting(setting) for setting in settings or []]
    for key, value in given:
        assign(spec, key, value)
    axes = read_axes(table.get("axes", {}), f"{path}: axes")
    tune = _tune(table.get("tune", {}), axes, path)
    _check_keys(path, spec, [key for key, _ in given], axes, tune)
    for key in ("title", "note"):
        require(isinstance(table.get(key, ""), str), f"{path}: {key}", table.get(key), "text")
    return Study(
        title=table.get("title", path.stem),
        note=table.get("note", ""),
        spec=spec,
        axes=axes,
        seeds=_seeds(table.get("seeds", [0]), path),
        exclude=tuple(_matching(entry, axes, f"{path}: exclude") for entry in _list(table, "exclude", path)),
        tune=tune,
        report=_report(table.get("report", {}), axes, path),
    )


def _with_parents(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the table in a file, on top of that of the file that it extends."""
    table = read_toml(path)
    if odd := (set(SECTIONS) - set(KEYS)) & table.keys():
        raise ConfigError(
            f"{path} has {', '.join(sorted(odd))}, sections of a spec: a spec is played with demoa run; "
            "in a study, what all runs share stands in [spec]"
        )
    parent = table.pop("extends", None)
    if parent is None:
        return table
    if not isinstance(parent, str):
        raise ConfigError(f"{path}: extends must be the name of a file, got {parent!r}")
    above = (path.parent / parent).resolve()
    if above in (*seen, path.resolve()):
        raise ConfigError(f"{path}: extends goes round in circles, through {above.name}")
    return _merged(_with_parents(above, (*seen, path.resolve())), table)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any], *, in_spec: bool = False) -> dict[str, Any]:
    """Return one table on top of another; tables go into each other, all else is replaced.

    An axis is one value, be it a list, a range or a group; so is a variant in the spec that has a name.
    """
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        whole = not isinstance(value, Mapping) or not isinstance(below, Mapping) or is_range(value) or is_range(below)
        if whole or (in_spec and "name" in value) or (key not in SECTIONS and key not in ("spec", "axes", "tune")):
            merged[key] = value
        else:
            assert isinstance(below, Mapping)
            merged[key] = _merged(below, value, in_spec=in_spec or key == "spec")
    return merged


def _check_keys(path: Path, spec: Mapping[str, Any], given: list[str], axes: tuple[Axis, ...], tune: Tune) -> None:
    for key in spec:
        if key not in SECTIONS:
            raise unknown_name(f"section in {path}: spec", key, SECTIONS)
    tuned = [*tune.over, *(axis for extra in tune.extra for axis in extra.over)]
    varied = {key: axis for axis in (*axes, *tuned) for choice in axis.choices for key in choice.settings}
    run = spec.get("run", {})
    if "run.seed" in varied or (isinstance(run, Mapping) and "seed" in run):
        raise ConfigError(f"{path}: run.seed is what runs are repeated over; use seeds = [0, 1] in its place")
    compared = {key for axis in axes for choice in axis.choices for key in choice.settings}
    for axis in tuned:
        for choice in axis.choices:
            for key in choice.settings:
                if key in compared:
                    raise ConfigError(f"{path}: {key} is compared in axes, so it cannot be tuned as well")
    for left, right in itertools.combinations(axes, 2):
        for one, two in itertools.product(_keys(left), _keys(right)):
            if _overlap(one, two):
                raise ConfigError(f"{path}: the axes {left.name} and {right.name} both set {max(one, two, key=len)}")
    for key in given:
        for other, axis in varied.items():
            if _overlap(key, other):
                raise ConfigError(f"--set {key} would be overridden by the axis {axis.name} of {path}")


def _keys(axis: Axis) -> list[str]:
    """Return all keys of the spec that an axis sets."""
    return sorted({key for choice in axis.choices for key in choice.settings})


def _overlap(one: str, other: str) -> bool:
    """Say whether two keys of the spec are the same, or one is a part of the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _seeds(value: Any, path: Path) -> tuple[int, ...]:
    if isinstance(value, Mapping) and is_range(value):
        (axis,) = read_axes({"run.seed": value}, f"{path}: seeds")
        value = [choice.settings["run.seed"] for choice in axis.choices]
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{path}: seeds must be a list or a range, such as [0, 1, 2], got {value!r}")
    seeds = tuple(whole_number(f"{path}: seeds", seed) for seed in value)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"{path}: seeds has the same seed twice; give each once")
    return seeds


def _tune(table: Any, axes: tuple[Axis, ...], path: Path) -> Tune:
    where = f"{path}: tune"
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table, got {table!r}")
    for key in table:
        if key not in (known := [field.name for field in dataclasses.fields(Tune)]):
            raise unknown_name(f"key in {where}", key, known)
    method = table.get("method", "grid")
    if method not in METHODS:
        raise unknown_name(f"{where}.method", method, METHODS)
    extra = []
    for entry in _list(table, "extra", path):
        if not isinstance(entry, Mapping) or set(entry) != {"where", "over"}:
            raise ConfigError(f'{where}.extra must have where and over: where = {{algorithm.name = "marina_pp"}}, ...')
        labels = _matching(entry["where"], axes, f"{where}.extra")
        extra.append(Extra(labels, read_axes(entry["over"], f"{where}.extra.over")))
    return Tune(
        method=method,
        over=read_axes(table.get("over", {}), f"{where}.over"),
        extra=tuple(extra),
        eta=whole_number(f"{where}.eta", table.get("eta", 3), least=2),
        least_rounds=whole_number(f"{where}.least_rounds", table.get("least_rounds", 1), least=1),
        keep=whole_number(f"{where}.keep", table.get("keep", 1), least=1),
    )


def _matching(entry: Any, axes: tuple[Axis, ...], where: str) -> dict[str, list[str]]:
    """Return labels by axis, as they stand in an exclusion; each must be one that the axis has."""
    if not isinstance(entry, Mapping) or not entry:
        raise ConfigError(f'{where} must be a table of axes and values, such as {{attack.name = "mimic"}}')
    known = {axis.name: [choice.label for choice in axis.choices] for axis in axes}
    found = {}
    for name, value in flat(entry).items():
        if name not in known:
            raise unknown_name(f"axis in {where}", name, known)
        whole = not isinstance(value, list) or label(value) in known[name]  # a list of mixings is one value
        labels = [label(value)] if whole else [label(item) for item in value]
        for each in labels:
            if each not in known[name]:
                raise unknown_name(f"value of {name} in {where}", each, known[name])
        found[name] = labels
    return found


def _report(table: Any, axes: tuple[Axis, ...], path: Path) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: report must be a table, got {table!r}")
    names = [axis.name for axis in axes]
    for key, value in table.items():
        if key not in REPORT_KEYS:
            raise unknown_name(f"key in {path}: report", key, REPORT_KEYS)
        if key == "metrics":
            for metric in value if isinstance(value, list) else [value]:
                if metric not in METRICS:
                    raise unknown_name(f"metric in {path}: report.metrics", metric, METRICS)
        elif value not in names:
            raise unknown_name(f"axis in {path}: report.{key}", value, names)
    roles = [value for key, value in table.items() if key != "metrics"]
    for axis in roles:
        if roles.count(axis) > 1:
            raise ConfigError(f"{path}: report has {axis} twice; rows, columns and curves are different axes")
    return dict(table)


def _list(table: Mapping[str, Any], key: str, path: Path) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise ConfigError(f"{path}: {key} must be a list of tables, got {value!r}")
    return value
