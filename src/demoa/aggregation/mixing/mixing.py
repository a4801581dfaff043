"""What a mixing is: a matrix that turns the rows into others before the rule looks at them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from demoa.aggregation.rules.rule import minority
from demoa.aggregation.table import Table
from demoa.core.types import Matrix


class Mixing(ABC):
    """A pre-aggregation. Subclasses are frozen dataclasses; their fields are its options.

    No mixed row is ever built: the rule sees the mixed table, and its weights are carried back.
    """

    keeps_rows: ClassVar[bool] = True
    """Whether row i that comes out still stands for client i."""

    looks_at_table: ClassVar[bool] = True
    """Whether it needs the inner products of all rows."""

    def rows_out(self, rows: int) -> int:
        """Return how many rows come out of `rows`."""
        return rows

    def tolerance(self, rows: int) -> int:
        """Return the largest number of faulty rows out of `rows` that the definition admits."""
        return minority(rows)

    @abstractmethod
    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Matrix:
        """Return the matrix, (m', m), by which the m rows of the table are to be multiplied; it may be sparse."""
