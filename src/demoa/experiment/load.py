"""From TOML and `--set section.key=value` to a Spec: strict, with the closest valid key in every refusal."""

from __future__ import annotations

import dataclasses
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from demoa.core.checks import real_number, whole_number
from demoa.core.errors import ConfigError, unknown_name
from demoa.experiment.spec import Spec, Variant


def read_spec(path: Path | None, settings: Iterable[str] = ()) -> Spec:
    """Return the spec in a TOML file, or the default one, with `section.key=value` settings on top."""
    table: dict[str, Any] = {} if path is None else read_toml(path)
    if odd := {"axes", "extends", "spec", "tune", "exclude", "report"} & table.keys():
        raise ConfigError(f"{path} is a study, as it has {', '.join(sorted(odd))}: play it with demoa sweep")
    for setting in settings:
        assign(table, *parse_setting(setting))
    return spec_from(table)


def read_toml(path: Path) -> dict[str, Any]:
    """Return what is in a TOML file."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def spec_from(table: Mapping[str, Any]) -> Spec:
    """Return the spec in a table, as TOML or JSON gives it; what is not in it keeps its default."""
    return typing.cast(Spec, _section(Spec, table, ""))


def parse_setting(setting: str) -> tuple[str, Any]:
    """Return key and value of a setting.

    >>> parse_setting("sampling.p=0.1"), parse_setting("aggregation.rule=krum")
    (('sampling.p', 0.1), ('aggregation.rule', 'krum'))
    """
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals or "." not in key:
        raise ConfigError(f"--set takes section.key=value, such as sampling.p=0.1, got {setting!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word is text
    if key.endswith(".name") and isinstance(value, float):
        value = text.strip()  # so is inf, which TOML takes for a number
    return key, value


def assign(table: dict[str, Any], key: str, value: Any) -> None:
    """Put a value into a spec's table, at section.key; the name of a variant that has options keeps them."""
    *path, last = key.split(".")
    for name in path:
        inner = table.setdefault(name, {})
        if isinstance(inner, str):  # rule = "krum" and then rule.tau=1
            inner = table[name] = {"name": inner}
        if not isinstance(inner, dict):
            raise ConfigError(f"{key} cannot be set: {name} is not a section")
        table = inner
    table[last] = value


def _section(kind: type[Any], table: Any, path: str) -> Any:
    where = path or "the spec"
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a section, got {table!r}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    values = {}
    for key, value in table.items():
        if key not in fields:
            raise unknown_name(f"key in {where}", key, fields)
        values[key] = _value(hints[key], value, f"{path}.{key}" if path else key, getattr(kind(), key))
    return kind(**values)


def _value(hint: Any, value: Any, path: str, default: Any) -> Any:
    if hint is Variant:
        return _variant(value, path, default)
    if hint == tuple[Variant, ...]:
        steps = value if isinstance(value, list) else [value]
        return tuple(_variant(step, path) for step in steps)
    if dataclasses.is_dataclass(hint):
        return _section(typing.cast(type[Any], hint), value, path)
    if hint in (str, str | None):
        if not isinstance(value, str):
            raise ConfigError(f"{path} must be text, got {value!r}")
        return value
    if hint is float:
        return real_number(path, value, "a number")
    return whole_number(path, value)


def _variant(value: Any, path: str, default: Variant | None = None) -> Variant:
    """Return a variant; options without a name are those of the default one."""
    if isinstance(value, str):
        return Variant(value)
    if isinstance(value, Mapping):
        options = {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
        name = options.pop("name", None)
        if isinstance(name, str):
            return Variant(name, options)
        if name is None and default is not None:
            return Variant(default.name, {**default.options, **options})
    raise ConfigError(f"{path} must be a name, or a table with a name and options, got {value!r}")
