"""Memory that is free but still this process's."""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Options of mallopt, as the GNU C library numbers them."""


def give_back_memory() -> None:
    """Collect garbage in cycles, and return free memory to the system, where the C library can do that.

    Large buffers that come and go in several threads leave a multiple of what is in use behind otherwise.
    """
    gc.collect()
    trim = _function("malloc_trim")
    if trim is not None:
        trim(0)


@cache
def keep_memory() -> None:
    """Keep free memory for what comes next, for good, where the C library can do that.

    Activations are megabytes, come and go many times a second, and would each be fetched from the system and given
    back: a third of the time of a simulated round.
    """
    set_option = _function("mallopt")
    if set_option is not None:
        set_option(M_MMAP_MAX, 0)
        set_option(M_TRIM_THRESHOLD, 2**31 - 1)


@cache
def _function(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):  # not the GNU C library
        return None
