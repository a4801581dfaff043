"""Nearest-neighbour mixing (NNM): each row becomes the average of those closest to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.aggregation.mixing.mixing import Mixing
from demoa.aggregation.table import Table
from demoa.core.types import Matrix


@dataclass(frozen=True)
class NearestNeighbours(Mixing):
    """Each row becomes the mean of its n - f nearest rows, itself among them.

    Reference: Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan, AISTATS 2023.
    """

    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Matrix:
        """Return one row of equal weights per neighbourhood."""
        order = np.argsort(table.squared_distances, axis=1, kind="stable")
        matrix = np.zeros((table.rows, table.rows))
        np.put_along_axis(matrix, order[:, : table.rows - f], 1.0 / (table.rows - f), axis=1)
        return matrix
