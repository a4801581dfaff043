"""Where rows are kept. `Store` is the seam; `DenseStore` is main memory, `DeviceStore` is torch."""

from typing import Any

import numpy as np

from demoa.aggregation.stores.dense import DenseStore
from demoa.aggregation.stores.store import Store
from demoa.core.arrays import dtype_name, on_cpu


def empty_store(rows: int, like: Any) -> Store:
    """Return a store of zero rows with the length, dtype and device of the vector `like`, (d,)."""
    if on_cpu(like):
        return DenseStore.zeros(rows, len(like), np.dtype(dtype_name(like)))
    from demoa.aggregation.stores.device import DeviceStore  # the only place that needs torch

    return DeviceStore.zeros(rows, like)


__all__ = ["DenseStore", "Store", "empty_store"]
