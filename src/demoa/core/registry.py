"""Families of variants, looked up by name in one literal dict each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from demoa.core.errors import ConfigError, unknown_name

T = TypeVar("T")


def build(kind: str, family: Mapping[str, type[T]], choice: str | T, **options: Any) -> T:
    """Return the family member called `choice`, made with `options`; an object is passed through.

    Args:
        kind: What the family is called in an error, such as "rule".
        family: The members by name, aliases among them; each is a dataclass.
        choice: A name, or a ready-made object, which takes no options.
        options: The fields of that dataclass.

    Raises:
        ConfigError: No member has that name, or the member has no such option.
    """
    if not isinstance(choice, str):
        if options:
            raise ConfigError(f"{kind} {choice!r} is already made; give its options when you make it")
        return choice
    if choice not in family:
        raise unknown_name(kind, choice, family)
    member = family[choice]
    fields = [f.name for f in dataclasses.fields(member) if f.init]  # type: ignore[arg-type]
    for option in options:
        if option not in fields:
            raise unknown_name(f"option of {kind} {choice}", option, fields or ["(none)"])
    return member(**options)


def describe(choice: Any) -> dict[str, Any]:
    """Return a variant as plain data: its class and its options."""
    return {"name": type(choice).__name__, **dataclasses.asdict(choice)}


def require(holds: bool, what: str, got: object, allowed: str) -> None:
    """Raise ConfigError unless the value `got` of option `what` is allowed."""
    if not holds:
        raise ConfigError(f"{what} must be {allowed}, got {got!r}")
