"""Where rows are kept. `Store` is the seam; `DenseStore` is main memory, `DeviceStore` is torch."""

from demoa.aggregation.stores.dense import DenseStore
from demoa.aggregation.stores.store import Store

__all__ = ["DenseStore", "Store"]
