"""Every error that demoa raises on purpose.

    DemoaError
    |-- ConfigError       a setting is wrong: an unknown name, a value out of range
    |-- ToleranceError    the asked-for fault bound f is beyond what a rule can take
    |-- UpdateRejected    one client's vector was refused; the round goes on without it
    |-- RoundError        a call came out of order: a round is open, or none is
    `-- StoreError        a saved state cannot be read or written

Each message says what was got, what is allowed and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DemoaError(Exception):
    """The root of all errors raised by this package."""


class ConfigError(DemoaError, ValueError):
    """A setting has an unknown name or a value that is not allowed."""


class ToleranceError(DemoaError, ValueError):
    """A rule was asked to tolerate more faulty rows than its definition allows."""


class RoundError(DemoaError, RuntimeError):
    """A call came out of order: a round is already open, or none is."""


class StoreError(DemoaError, OSError):
    """A saved state is truncated, foreign, of another version, or cannot be written."""


class UpdateRejected(DemoaError, ValueError):
    """One client's vector was refused.

    Attributes:
        client: The client it came from, as the caller named it.
        reason: A short fixed word for logs and counters, such as ``"not_finite"``.
    """

    def __init__(self, client: object, reason: str, message: str) -> None:
        """Put client, reason and message into one line."""
        super().__init__(f"update of client {client!r} rejected ({reason}): {message}")
        self.client = client
        self.reason = reason


def unknown_name(kind: str, got: object, allowed: Iterable[str]) -> ConfigError:
    """Return the error for a name that no family member has, with the closest one that does.

    >>> print(unknown_name("rule", "krun", ["krum", "mean"]))
    unknown rule 'krun'; did you mean 'krum'? Allowed: krum, mean
    """
    names = sorted(allowed)
    near = difflib.get_close_matches(str(got), names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return ConfigError(f"unknown {kind} {got!r}{hint} Allowed: {', '.join(names)}")


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's message, or its kind if it has none.

    >>> first_line(ValueError("too long\nfor one line")), first_line(TimeoutError())
    ('too long', 'TimeoutError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
