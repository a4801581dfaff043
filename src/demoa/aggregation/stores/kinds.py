"""The kinds of stores, by name: what a row takes, and where it is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from demoa.aggregation.stores.codecs import Bfloat16Codec, Codec, Int8Codec, PlainCodec, TopKCodec
from demoa.aggregation.stores.dense import DenseStore
from demoa.aggregation.stores.mapped import STAMPS, MappedPlanes
from demoa.aggregation.stores.memory import MemoryPlanes
from demoa.aggregation.stores.store import Store
from demoa.aggregation.stores.tiled import TiledStore
from demoa.core.arrays import LARGEST_NORM, dtype_name, on_cpu
from demoa.core.checks import require, share, whole_number
from demoa.core.errors import ConfigError
from demoa.core.registry import describe


class Bytes(NamedTuple):
    """What rows take: in main memory, and on disk."""

    memory: int
    disk: int


class StoreKind(ABC):
    """Where and how a server keeps its rows. Subclasses are frozen dataclasses; their fields are its options."""

    @abstractmethod
    def make(self, clients: int, own: int, like: Any) -> Store:
        """Return zero rows of the length, dtype and device of the vector `like`, (d,).

        Args:
            clients: How many rows there are for clients.
            own: How many rows the server needs for itself: they are kept as plain numbers.
            like: What the rows are like.
        """

    @abstractmethod
    def size(self, clients: int, width: int, itemsize: int) -> Bytes:
        """Return what the rows of so many clients take, of `width` numbers of `itemsize` bytes each."""

    def described(self) -> dict[str, Any]:
        """Return, as JSON holds it, what must agree between a server that saves its rows and one that loads them."""
        return {key: value for key, value in describe(self).items() if key != "folder"}

    def largest_norm(self, dtype: str) -> float:
        """Return how long a vector of this dtype may be."""
        return LARGEST_NORM[dtype]

    def entries(self, width: int) -> int:
        """Return how long whole vectors are where this store sees vectors of `width` entries."""
        return width


@dataclass(frozen=True)
class Dense(StoreKind):
    """Rows as plain numbers in main memory, or on the device of the parameters."""

    def make(self, clients: int, own: int, like: Any) -> Store:
        """Return zero rows."""
        if on_cpu(like):
            return DenseStore.zeros(clients + own, len(like), np.dtype(dtype_name(like)))
        from demoa.aggregation.stores.device import DeviceStore  # the only place that needs torch

        return DeviceStore.zeros(clients + own, like)

    def size(self, clients: int, width: int, itemsize: int) -> Bytes:
        """Return the size of the numbers."""
        return Bytes(clients * width * itemsize, 0)


@dataclass(frozen=True)
class _Encoded(StoreKind):
    """Rows behind a codec, in main memory or, with a folder, in memory-mapped files."""

    folder: str | Path | None = None

    @abstractmethod
    def codec(self, dtype: np.dtype[np.floating]) -> Codec:
        """Return how rows of this dtype are written."""

    def largest_norm(self, dtype: str) -> float:
        """Return how long a vector may be: numbers in fewer bytes are no larger than those of float32."""
        return LARGEST_NORM["float32"]

    def make(self, clients: int, own: int, like: Any) -> Store:
        """Return zero rows."""
        if not on_cpu(like):
            raise ConfigError(f"store {type(self).__name__} keeps rows in main memory; put the parameters there, too")
        dtype = np.dtype(dtype_name(like))
        codec = self.codec(dtype)
        planes = codec.planes(len(like))
        holder = (
            MemoryPlanes(clients, planes) if self.folder is None else MappedPlanes(Path(self.folder), clients, planes)
        )
        return TiledStore(codec, holder, np.zeros((own, len(like)), dtype), clients)

    def size(self, clients: int, width: int, itemsize: int) -> Bytes:
        """Return the size of the planes."""
        planes = self.codec(np.dtype(f"f{itemsize}")).planes(width).values()
        row = sum(plane.columns * plane.dtype.itemsize for plane in planes)
        rows = clients * row
        return Bytes(rows, 0) if self.folder is None else Bytes(0, rows + (clients + 1) * STAMPS.itemsize)


@dataclass(frozen=True)
class Memmap(_Encoded):
    """Rows as plain numbers in a memory-mapped file: as many as the disk holds.

    Args:
        folder: Where the files are; it must outlive the server's saved states.
    """

    def __post_init__(self) -> None:
        require(self.folder is not None, "memmap: folder", None, "a folder: Memmap(folder=...)")

    def codec(self, dtype: np.dtype[np.floating]) -> Codec:
        """Return the codec that changes nothing."""
        return PlainCodec(dtype)

    def largest_norm(self, dtype: str) -> float:
        """Return how long a vector of this dtype may be."""
        return LARGEST_NORM[dtype]


@dataclass(frozen=True)
class Bfloat16(_Encoded):
    """Rows in two bytes per number, rounded to eight binary digits.

    Args:
        folder: Where to keep them in memory-mapped files; in main memory if not given.
    """

    def codec(self, dtype: np.dtype[np.floating]) -> Codec:
        """Return the codec of bfloat16."""
        return Bfloat16Codec()


@dataclass(frozen=True)
class Int8(_Encoded):
    """Rows in a byte per number, with a scale for each block of numbers.

    Args:
        folder: Where to keep them in memory-mapped files; in main memory if not given.
        block: How many numbers share a scale.
    """

    block: int = 64

    def __post_init__(self) -> None:
        whole_number("int8: block", self.block, least=1)

    def codec(self, dtype: np.dtype[np.floating]) -> Codec:
        """Return the codec of eight bits."""
        return Int8Codec(self.block)


@dataclass(frozen=True)
class TopK(_Encoded):
    """The largest numbers of each row; what is left out waits for the next time that the row is written.

    Args:
        folder: Where to keep them in memory-mapped files; in main memory if not given.
        share: Which share of the numbers rules see.
        feedback: Whether what is left out is kept, in a byte per number, or lost.
    """

    share: float = 0.05
    feedback: bool = True

    def __post_init__(self) -> None:
        share("top_k: share", self.share)
        require(self.share > 0, "top_k: share", self.share, "above 0")

    def codec(self, dtype: np.dtype[np.floating]) -> Codec:
        """Return the codec of the largest numbers."""
        return TopKCodec(self.share, self.feedback)


STORES: Mapping[str, type[StoreKind]] = {
    "bfloat16": Bfloat16,
    "dense": Dense,
    "int8": Int8,
    "memmap": Memmap,
    "top_k": TopK,
}
"""Every kind of store by its name."""
