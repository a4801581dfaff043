"""Clipping of long rows to a fixed radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from demoa.aggregation.mixing.mixing import Mixing
from demoa.aggregation.table import Table
from demoa.core.checks import positive
from demoa.core.types import Floats, Matrix


@dataclass(frozen=True)
class Clip(Mixing):
    """Rows longer than `radius` are scaled down to it: x_i min(1, radius / |x_i|).

    Args:
        radius: The longest norm that is left as it is.
    """

    radius: float

    def __post_init__(self) -> None:
        positive("clip: radius", self.radius)

    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Matrix:
        """Return the factors on the diagonal."""
        return csr_array(diags_array(clip_factors(table.squared_norms, self.radius)))


def clip_factors(squared_norms: Floats, radius: float) -> Floats:
    """Return min(1, radius / norm) per row, (m,)."""
    norms = np.sqrt(squared_norms)
    return np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)
