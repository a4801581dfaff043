"""How columns are cut into pieces of fixed size, one per task."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from demoa.core.threads import map_in_threads

CHUNK = 1 << 16
"""Columns per task: enough to hide the cost of a task, few enough to feed many cores."""

LONG_CHUNK = 1 << 18
"""The same for work on one row: below this, handing work to a thread costs more than it saves."""

R = TypeVar("R")


def map_chunks(width: int, task: Callable[[int, int], R], size: int = CHUNK) -> list[R]:
    """Return [task(start, stop), ...] over consecutive pieces of range(width), in order."""
    return map_in_threads(lambda start: task(start, min(start + size, width)), range(0, width, size))
