"""Checks on arrays that were read back from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.core.errors import StoreError


def matching(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return arrays[name] if it has this shape and dtype, else raise StoreError."""
    if name not in arrays:
        raise StoreError(f"the saved state has no array {name!r}; it holds: {', '.join(sorted(arrays))}")
    found = arrays[name]
    if found.shape != shape or found.dtype != dtype:
        raise StoreError(
            f"saved array {name!r} is {found.dtype} {found.shape}, this server needs {dtype} {shape}; "
            "load it into a server made with the same clients, parameters and rule"
        )
    return found
