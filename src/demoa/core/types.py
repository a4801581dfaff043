"""The array types that cross module boundaries.

Shapes are written beside names as (n, d): n clients or rows, d parameters.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Small tables and weights: always float64 on the CPU."""

Matrix: TypeAlias = Any
"""Combinations of rows, one per row of a matrix: a `Floats`, or, where most of it is zero, a csr_array of SciPy's."""
