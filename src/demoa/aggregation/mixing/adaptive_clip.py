"""Adaptive robust clipping (ARC): the radius follows the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from demoa.aggregation.mixing.clip import clip_factors
from demoa.aggregation.mixing.mixing import Mixing
from demoa.aggregation.table import Table
from demoa.core.types import Matrix


@dataclass(frozen=True)
class AdaptiveClip(Mixing):
    """The k = floor(2 (f / n) (n - f)) longest rows are scaled down to the length of the next one.

    Reference: Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan, ICLR 2025 (ARC).
    """

    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Matrix:
        """Return the factors on the diagonal."""
        clipped = 2 * f * (table.rows - f) // table.rows
        radius = np.sqrt(np.sort(table.squared_norms)[table.rows - clipped - 1])
        return csr_array(diags_array(clip_factors(table.squared_norms, float(radius))))
