"""Checks on values that a caller gives: each raises a ConfigError that says what is allowed."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from demoa.core.errors import ConfigError
from demoa.core.types import Floats


def require(holds: bool, what: str, got: object, allowed: str) -> None:
    """Raise ConfigError unless the value `got` of option `what` is allowed."""
    if not holds:
        raise ConfigError(f"{what} must be {allowed}, got {got!r}")


def whole_number(what: str, got: Any, *, least: int | None = None) -> int:
    """Return got as an int, whatever library it comes from, if it is a whole number and not below `least`.

    >>> whole_number("rounds", 3, least=1)
    3
    """
    allowed = "a whole number" if least is None else f"a whole number, at least {least}"
    require(hasattr(got, "__index__") and not isinstance(got, bool), what, got, allowed)
    try:
        number = operator.index(got)
    except TypeError:
        raise ConfigError(f"{what} must be {allowed}, got {got!r}") from None
    require(least is None or number >= least, what, got, allowed)
    return number


def real_number(what: str, got: Any, allowed: str) -> float:
    """Return got as a finite float, or raise ConfigError."""
    if isinstance(got, bool | str | bytes) or getattr(got, "shape", ()) != ():
        raise ConfigError(f"{what} must be {allowed}, got {got!r}")
    try:
        number = float(got)
    except (TypeError, ValueError):
        raise ConfigError(f"{what} must be {allowed}, got {got!r}") from None
    require(math.isfinite(number), what, got, allowed)
    return number


def positive(what: str, got: Any) -> float:
    """Return got as a float if it is a finite number above 0."""
    number = real_number(what, got, "a number above 0")
    require(number > 0, what, got, "a number above 0")
    return number


def share(what: str, got: Any) -> float:
    """Return got as a float if it is above 0 and at most 1."""
    number = real_number(what, got, "above 0 and at most 1")
    require(0 < number <= 1, what, got, "above 0 and at most 1")
    return number


def shares(what: str, got: Any, count: int) -> float | Floats:
    """Return got as one share, or as an array of `count` of them."""
    if np.ndim(got) == 0:
        return share(what, got)
    values = np.array([share(what, value) for value in got])
    require(values.shape == (count,), what, got, f"one number, or one for each of {count}")
    return values
