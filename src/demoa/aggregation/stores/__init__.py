"""Where rows are kept. `Store` is the seam, and `STORES` is the whole list of kinds."""

from demoa.aggregation.stores.dense import DenseStore
from demoa.aggregation.stores.kinds import STORES, Bfloat16, Dense, Int8, Memmap, StoreKind, TopK
from demoa.aggregation.stores.store import Store

__all__ = ["STORES", "Bfloat16", "Dense", "DenseStore", "Int8", "Memmap", "Store", "StoreKind", "TopK"]
