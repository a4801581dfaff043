"""Families of variants, looked up by name in one literal dict each."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from demoa.core.errors import ConfigError, unknown_name
from demoa.core.imports import imported, is_import_path

T = TypeVar("T")


def build(kind: str, base: type[T], family: Mapping[str, type[T]], choice: str | T, **options: Any) -> T:
    """Return the family member called `choice`, made with `options`; an object is passed through.

    Args:
        kind: What the family is called in an error, such as "rule".
        base: What its members derive from.
        family: The members by name; each is a dataclass.
        choice: A name; or where a member of the user's own is, as package.module:Class; or a ready-made object, which
            takes no options.
        options: The fields of that dataclass.

    Raises:
        ConfigError: No member has that name, or an option is unknown or missing.
    """
    if isinstance(choice, str):
        member = imported(kind, choice) if is_import_path(choice) else family.get(choice)
        if member is None:
            raise unknown_name(kind, choice, family)
        if not (isinstance(member, type) and issubclass(member, base) and dataclasses.is_dataclass(member)):
            raise ConfigError(
                f"{kind} {choice} must be a dataclass that derives from {base.__module__}.{base.__name__}"
            )
        _check_options(f"{kind} {choice}", member, options)
        if inspect.isabstract(member):
            missing = ", ".join(sorted(member.__abstractmethods__))
            raise ConfigError(f"{kind} {choice} must have the methods that {base.__name__} leaves open: {missing}")
        return cast(T, member(**options))
    if isinstance(choice, type):
        raise ConfigError(f"{kind} {choice.__name__} is a class; make one of it: {choice.__name__}(...)")
    if not isinstance(choice, base):
        raise ConfigError(f"{kind} must be a name or a {base.__name__}, got {choice!r}")
    if options:
        raise ConfigError(f"{kind} {choice!r} is already made; give its options when you make it")
    return choice


def _check_options(what: str, member: type[Any], options: Mapping[str, Any]) -> None:
    fields = {field.name: field for field in dataclasses.fields(member)}
    for option, value in options.items():
        if option not in fields:
            raise unknown_name(f"option of {what}", option, fields or ["(it has none)"])
        if isinstance(fields[option].default, bool) and not isinstance(value, bool):
            raise ConfigError(f"{what}: {option} must be true or false, got {value!r}")
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in options:
            raise ConfigError(f"{what} needs the option {name}: make it with {member.__name__}({name}=...)")


def describe(choice: Any) -> dict[str, Any]:
    """Return a variant as plain data: its class and its options."""
    fields = dataclasses.fields(choice) if dataclasses.is_dataclass(choice) else ()
    return {"name": type(choice).__name__, **{field.name: _plain(getattr(choice, field.name)) for field in fields}}


def _plain(value: Any) -> Any:
    """Return an option as JSON holds it."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str | int | float | None):
        return value
    return value.item() if hasattr(value, "item") else repr(value)
