"""Worker threads for the compiled kernels, which release the interpreter lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar, cast

from demoa.core.checks import whole_number

T = TypeVar("T")
R = TypeVar("R")

_chosen: int | None = None
_thread = threading.local()


def set_threads(count: int | None) -> None:
    """Set how many threads the kernels use; None means one per core that this process may use.

    Results do not depend on the number: work is cut into the same pieces, and the pieces are added
    in the same order.
    """
    global _chosen
    _chosen = None if count is None else whole_number("threads", count, least=1)


def get_threads() -> int:
    """Return how many threads the kernels use."""
    return cores() if _chosen is None else _chosen


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(task: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return [task(item) for item in items]; each thread takes the next item as soon as it is free.

    A task that maps in its turn does so in its own thread: the others have work already.
    """
    work = list(items)
    threads = min(get_threads(), len(work))
    if threads < 2 or getattr(_thread, "busy", False):
        return [task(item) for item in work]
    results: list[R | None] = [None] * len(work)
    left = iter(range(len(work)))  # next() on it is one step for the interpreter: no two threads get the same

    def run() -> None:
        _thread.busy = True
        try:
            for place in left:
                results[place] = task(work[place])
        finally:
            _thread.busy = False

    # The calling thread works as well: one hand-over less, and a thread that wakes up late holds nobody up.
    others = [_pool(os.getpid(), threads - 1).submit(run) for _ in range(1, threads)]
    try:
        run()
    finally:
        for other in others:
            other.result()
    return cast(list[R], results)


@cache
def _pool(pid: int, count: int) -> ThreadPoolExecutor:
    # Threads do not survive a fork, so a child process, seen by its pid, gets a pool of its own.
    del pid
    return ThreadPoolExecutor(count, thread_name_prefix="demoa")
