"""Worker threads for the compiled kernels, which release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from demoa.core.checks import whole_number

T = TypeVar("T")
R = TypeVar("R")

_chosen: int | None = None


def set_threads(count: int | None) -> None:
    """Set how many threads the kernels use; None means one per core that this process may use.

    Results do not depend on the number: work is cut into the same pieces, and the pieces are added
    in the same order.
    """
    global _chosen
    _chosen = None if count is None else whole_number("threads", count, least=1)


def get_threads() -> int:
    """Return how many threads the kernels use."""
    if _chosen is not None:
        return _chosen
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(task: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return [task(item) for item in items], in consecutive shares, one per thread."""
    work = list(items)
    threads = min(get_threads(), len(work))
    if threads < 2:
        return [task(item) for item in work]
    cuts = [len(work) * share // threads for share in range(threads + 1)]

    def run(share: int) -> list[R]:
        return [task(item) for item in work[cuts[share] : cuts[share + 1]]]

    # The calling thread takes the first share: one hand-over less, and none where there is one thread.
    others = [_pool(os.getpid(), threads - 1).submit(run, share) for share in range(1, threads)]
    return [*run(0), *(result for other in others for result in other.result())]


@cache
def _pool(pid: int, count: int) -> ThreadPoolExecutor:
    # Threads do not survive a fork, so a child process, seen by its pid, gets a pool of its own.
    del pid
    return ThreadPoolExecutor(count, thread_name_prefix="demoa")
