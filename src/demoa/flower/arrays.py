"""Named arrays on the wire, and the one vector that the server works with."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from demoa.core.errors import ConfigError, UpdateRejected, first_line

FLOATS = ("float32", "float64")
HEADER = 4096
"""More bytes than the header of an array takes."""


@dataclass(frozen=True)
class Layout:
    """Which arrays make up the vector, in order: their names and shapes, and the dtype that all of them have."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str

    @classmethod
    def of(cls, arrays: ArrayRecord) -> Layout:
        """Return the layout of a model's arrays: of one float dtype, as what has no gradient has no row."""
        kinds = {name: array.dtype for name, array in arrays.items()}
        dtypes = set(kinds.values())
        if len(dtypes) != 1 or not dtypes <= set(FLOATS):
            raise ConfigError(
                f"all arrays of the model must be float32, or all float64, got {kinds}; "
                "leave out what is not trained, such as the counters of BatchNorm"
            )
        shapes = tuple(tuple(array.shape) for array in arrays.values())
        return cls(tuple(arrays), shapes, dtypes.pop())

    @property
    def width(self) -> int:
        """How long the vector is."""
        return sum(math.prod(shape) for shape in self.shapes)

    def vector(self, client: object, arrays: Any) -> NDArray[np.floating]:
        """Return a client's arrays as one vector, (d,); raise UpdateRejected for whatever is wrong with them.

        What a client sends is not trusted: names, shapes and dtype are compared with the model's before a byte is read,
        and the bytes with what they should be.
        """
        if not isinstance(arrays, ArrayRecord):
            raise UpdateRejected(client, "no_arrays", "the reply holds no arrays")
        if set(arrays) != set(self.names):
            strange = sorted(set(arrays) ^ set(self.names))[:5]
            raise UpdateRejected(client, "names", f"arrays must be those of the model; missing or strange: {strange}")
        parts = [
            self._part(client, name, shape, arrays[name]) for name, shape in zip(self.names, self.shapes, strict=True)
        ]
        return np.concatenate(parts)

    def _part(self, client: object, name: str, shape: tuple[int, ...], array: Array) -> NDArray[np.floating]:
        """Return one array, flat."""
        if tuple(array.shape) != shape:
            raise UpdateRejected(client, "shape", f"array {name!r} must be {shape}, got {tuple(array.shape)}")
        if array.dtype != self.dtype:
            raise UpdateRejected(client, "dtype", f"array {name!r} must be {self.dtype}, got {array.dtype}")
        size = math.prod(shape) * np.dtype(self.dtype).itemsize
        try:
            data = array.data
            if not size < len(data) < size + HEADER:
                raise ValueError(f"{len(data)} bytes for {size} of content")
            file = io.BytesIO(data)
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise ValueError(f"version {version} of the format")
            found, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            if (found, fortran and len(shape) > 1, dtype) != (shape, False, np.dtype(self.dtype)):
                raise ValueError(f"a header that says {found}, {dtype}")
            part: NDArray[np.floating] = np.frombuffer(data, dtype, offset=file.tell())
            if part.size != math.prod(shape):
                raise ValueError(f"{part.size} entries")
        except Exception as error:  # whatever bytes of others may lead to
            raise UpdateRejected(client, "damaged", f"array {name!r} cannot be read: {first_line(error)}") from error
        return part

    def arrays(self, vector: Any) -> ArrayRecord:
        """Return a vector, (d,), as the named arrays of the model."""
        record, start, flat = {}, 0, np.asarray(vector)
        for name, shape in zip(self.names, self.shapes, strict=True):
            stop = start + math.prod(shape)
            record[name] = Array(np.ascontiguousarray(flat[start:stop]).reshape(shape))
            start = stop
        return ArrayRecord(record)


def as_vector(arrays: ArrayRecord) -> NDArray[np.floating]:
    """Return arrays of one's own, which are trusted, as one vector, (d,)."""
    return np.concatenate([array.numpy().reshape(-1) for array in arrays.values()])
