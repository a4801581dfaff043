"""The array types that cross module boundaries.

Shapes are written beside names as (n, d): n clients or rows, d parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Floats: TypeAlias = NDArray[np.float64]
"""Small tables and weights: always float64 on the CPU."""

Vector: TypeAlias = "NDArray[np.floating] | torch.Tensor"
"""A (d,) vector, or (n, d) rows, in the caller's own library, dtype and device."""
