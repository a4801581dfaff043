"""NumPy arrays and torch tensors side by side. torch is imported only if the caller already has."""

from __future__ import annotations

import sys
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from demoa.core.errors import ConfigError

LARGEST_NORM = {"float32": 1e19, "float64": 1e75}
"""The longest vectors that are worked with, per dtype: squares, and their sums and products, stay finite."""


def is_tensor(value: object) -> TypeGuard[Any]:
    """Say whether value is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_plain(value: object) -> TypeGuard[Any]:
    """Say whether value is an ordinary array or tensor: not masked, sparse or without memory."""
    if is_tensor(value):
        return str(value.layout) == "torch.strided" and value.device.type != "meta"
    return isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)


def dtype_name(value: Any) -> str:
    """Return the dtype without its library: "float32" for np.float32 and torch.float32 alike.

    >>> dtype_name(np.zeros(1, np.float32))
    'float32'
    """
    return str(value.dtype).removeprefix("torch.")


def to_numpy(value: Any) -> NDArray[Any]:
    """Return an array or tensor as a NumPy array, sharing memory with a tensor that lies on the CPU."""
    if is_tensor(value):
        return np.asarray(value.detach().resolve_conj().resolve_neg().cpu().numpy())
    return np.asarray(value)


def on_cpu(value: Any) -> bool:
    """Say whether the numbers lie in main memory, where the compiled kernels reach them."""
    return not is_tensor(value) or value.device.type == "cpu"


def like(original: Any, array: Any) -> Any:
    """Return array as the same kind of object as original: a tensor, on the same device, for a tensor."""
    if is_tensor(array):
        return array
    return sys.modules["torch"].from_numpy(array).to(original.device) if is_tensor(original) else array


def frozen(original: Any, vector: Any) -> Any:
    """Return a vector through which the caller changes nothing, as the same kind of object as original.

    NumPy can show its memory read-only; torch cannot, so a tensor is a copy.
    """
    if is_tensor(vector):
        return vector.clone()
    if is_tensor(original):
        return like(original, vector.copy())
    view = vector.view()
    view.flags.writeable = False
    return view


def check_floats(value: Any, dimensions: int, what: str) -> None:
    """Raise ConfigError unless value is a float32 or float64 array or tensor of that many dimensions."""
    form = "(n, d)" if dimensions == 2 else "(d,)"
    wanted = f"{what} must be a NumPy array or dense torch tensor of float32 or float64, shape {form}, not empty"
    if not is_plain(value):
        raise ConfigError(f"{wanted}; got {type(value).__name__}")
    shape = tuple(value.shape)
    if dtype_name(value) not in LARGEST_NORM or len(shape) != dimensions or 0 in shape:
        raise ConfigError(f"{wanted}; got {dtype_name(value)} of shape {shape}")
