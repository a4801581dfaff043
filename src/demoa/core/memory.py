"""Memory that is free but still this process's."""

from __future__ import annotations

import ctypes
import gc
from functools import cache
from typing import Any


def give_back_memory() -> None:
    """Collect garbage in cycles, and return free memory to the system, where the C library can do that.

    Large buffers that come and go in several threads leave a multiple of what is in use behind otherwise.
    """
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # not the GNU C library
        return None
