"""Axes: what a study varies. Each is a name and some choices, and a choice is settings on top of the common spec."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.core.checks import real_number, whole_number
from demoa.core.errors import ConfigError, unknown_name
from demoa.experiment.spec import Spec
from demoa.results.labels import label

SECTIONS = tuple(field.name for field in dataclasses.fields(Spec))
RANGE_KEYS = ("from", "to", "step", "count", "scale")


@dataclass(frozen=True)
class Choice:
    """One value of an axis: what it is called, and the settings that it makes, by section.key."""

    label: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """What a study varies: a key of the spec, or a name for keys that change together."""

    name: str
    choices: tuple[Choice, ...]


def read_axes(table: Any, where: str) -> tuple[Axis, ...]:
    """Return the axes in a table of TOML.

    A key of the spec takes a list, or a range: {from = 0, to = 4}, {from = 0.1, to = 0.5, step = 0.1},
    {from = 0.001, to = 0.1, count = 3, scale = "log"}. Any other name is a group: a table of choices by name, each with
    its settings.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table of axes, got {table!r}")
    axes = []
    for name, value in table.items():
        if name.partition(".")[0] in SECTIONS:
            axes += [_key_axis(key, found, where) for key, found in _leaves(name, value)]
        else:
            axes.append(_group(name, value, where))
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise ConfigError(f"{where} has an axis twice: {', '.join(sorted(names))}")
    return tuple(axes)


def combinations(axes: tuple[Axis, ...]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield every combination: the label of each axis' choice, and all settings together."""
    for chosen in itertools.product(*(axis.choices for axis in axes)):
        labels = {axis.name: choice.label for axis, choice in zip(axes, chosen, strict=True)}
        settings: dict[str, Any] = {}
        for choice in chosen:
            settings |= choice.settings
        yield labels, settings


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of nested tables under dotted keys.

    >>> flat({"task": {"partition": "iid"}, "attack.name": "alie"})
    {'task.partition': 'iid', 'attack.name': 'alie'}
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys below a section, with their lists or ranges."""
    if isinstance(value, Mapping) and value and not is_range(value):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name, value


def is_range(value: Mapping[str, Any]) -> bool:
    """Say whether a table is a range of values, and not a section or a group."""
    return "from" in value or "to" in value


def _key_axis(key: str, value: Any, where: str) -> Axis:
    if isinstance(value, Mapping) and is_range(value):
        value = _range(f"{where}: {key}", value)
    if not isinstance(value, list):
        raise ConfigError(f"{where}: {key} must be a list or a range, such as [1, 2] or {{from = 1, to = 2}}")
    return _axis(key, [Choice(label(item), {key: item}) for item in value], where)


def _group(name: str, value: Any, where: str) -> Axis:
    if not isinstance(value, Mapping) or not all(isinstance(settings, Mapping) for settings in value.values()):
        hint = unknown_name("section", name, SECTIONS)
        raise ConfigError(
            f"{where}: {name} is neither a key of the spec ({hint}) nor a group, "
            f'which has choices by name: {name} = {{one = {{task.partition = "iid"}}, ...}}'
        )
    choices = [Choice(choice, flat(settings)) for choice, settings in value.items()]
    for choice in choices:
        for key in choice.settings:
            if key.partition(".")[0] not in SECTIONS:
                raise unknown_name(f"section in {where}: {name}.{choice.label}", key, SECTIONS)
    return _axis(name, choices, where)


def _axis(name: str, choices: list[Choice], where: str) -> Axis:
    if not choices:
        raise ConfigError(f"{where}: {name} is empty; give it at least one value, or leave it out")
    labels = [choice.label for choice in choices]
    for twice in labels:
        if labels.count(twice) > 1:
            raise ConfigError(f"{where}: {name} has {twice} twice; give each value once")
    return Axis(name, tuple(choices))


def _range(what: str, table: Mapping[str, Any]) -> list[Any]:
    """Return the values of a range, its ends included."""
    for key in table:
        if key not in RANGE_KEYS:
            raise unknown_name(f"key in the range of {what}", key, RANGE_KEYS)
    if "from" not in table or "to" not in table:
        raise ConfigError(f"{what}: a range has from and to, got {dict(table)!r}")
    start, stop = (real_number(f"{what}.{key}", table[key], "a number") for key in ("from", "to"))
    scale = table.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise ConfigError(f'{what}.scale must be "linear" or "log", got {scale!r}')
    whole = all(isinstance(table.get(key, 0), int) for key in ("from", "to", "step"))
    if "count" in table:
        count = whole_number(f"{what}.count", table["count"], least=1)
        if scale == "log" and min(start, stop) <= 0:
            raise ConfigError(f"{what}: a range on a log scale must be above 0")
        spread = (np.geomspace if scale == "log" else np.linspace)(start, stop, count)
        values = [float(f"{value:.12g}") for value in spread]
        return [int(value) for value in values] if whole and all(value.is_integer() for value in values) else values
    if scale == "log":
        raise ConfigError(f"{what}: a range on a log scale needs a count")
    step = real_number(f"{what}.step", table.get("step", 1), "a number")
    if step <= 0:
        raise ConfigError(f"{what}.step must be above 0, got {step:g}")
    steps = np.arange(0, np.floor((stop - start) / step + 1e-9) + 1)
    values = [float(f"{start + step * number:.12g}") for number in steps]
    return [int(value) for value in values] if whole else values
