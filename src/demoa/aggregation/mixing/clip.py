"""Clipping of long rows: to a fixed radius, or to one that follows the rows (ARC)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.mixing.mixing import Mixing
from demoa.aggregation.table import Table
from demoa.core.registry import require
from demoa.core.types import Floats


@dataclass(frozen=True)
class Clip(Mixing):
    """Rows longer than `radius` are scaled down to it: x_i min(1, radius / |x_i|).

    Args:
        radius: The longest norm that is left as it is.
    """

    radius: float

    def __post_init__(self) -> None:
        require(self.radius > 0, "clip: radius", self.radius, "above 0")

    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Floats:
        """Return the factors on the diagonal."""
        return np.diag(clip_factors(table.squared_norms, self.radius))


@dataclass(frozen=True)
class AdaptiveClip(Mixing):
    """The k = floor(2 (f / n) (n - f)) longest rows are scaled down to the length of the next one.

    Reference: Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan, ICLR 2025 (ARC).
    """

    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Floats:
        """Return the factors on the diagonal."""
        clipped = 2 * f * (table.rows - f) // table.rows
        radius = np.sqrt(np.sort(table.squared_norms)[table.rows - clipped - 1])
        return np.diag(clip_factors(table.squared_norms, float(radius)))


def clip_factors(squared_norms: Floats, radius: float) -> Floats:
    """Return min(1, radius / norm) per row, (m,)."""
    norms = np.sqrt(squared_norms)
    return np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)
