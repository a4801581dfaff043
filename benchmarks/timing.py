"""How the benchmarks time, and how they get at ByzFL."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from time import perf_counter, sleep
from unittest.mock import MagicMock

SETTLE = 0.02  # seconds: torch's idle threads spin for a while, and would hold a core that others need


def best(repeats: int, turns: int, *works: Callable[[], object]) -> list[float]:
    """Return the least time of each work, in milliseconds, of about so many repeats.

    Works take turns of several runs each, spread over some seconds, as other tenants of the machine come and go.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(turns):
        for work, taken in zip(works, times, strict=True):
            sleep(SETTLE)
            work()  # warms up, and does not count
            for _ in range(-(-repeats // turns)):
                start = perf_counter()
                work()
                taken.append(perf_counter() - start)
    return [1e3 * min(taken) for taken in times]


def has_byzfl() -> bool:
    """Say whether ByzFL is installed, and make it importable without the torchvision that it asks for."""
    if importlib.util.find_spec("byzfl") is None:
        return False
    for name in ("torchvision", "torchvision.datasets", "torchvision.transforms"):
        sys.modules.setdefault(name, MagicMock())  # it is imported there, and not used by what is measured
    return True
