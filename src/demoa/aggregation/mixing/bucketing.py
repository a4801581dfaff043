"""Bucketing: rows are shuffled and averaged in small groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from demoa.aggregation.mixing.mixing import Mixing
from demoa.aggregation.table import Table
from demoa.core.checks import whole_number
from demoa.core.types import Matrix


@dataclass(frozen=True)
class Bucketing(Mixing):
    """The averages of ceil(n / size) random groups of `size` rows, drawn anew each time.

    The last group is smaller where size does not divide n. The rule after it must stand f faulty groups:
    each faulty row can spoil one.

    Args:
        size: Rows per group.

    Reference: Karimireddy, He, Jaggi, ICLR 2022.
    """

    keeps_rows: ClassVar[bool] = False
    looks_at_table: ClassVar[bool] = False

    size: int = 2

    def __post_init__(self) -> None:
        whole_number("bucketing: size", self.size, least=1)

    def rows_out(self, rows: int) -> int:
        """Return the number of groups."""
        return -(-rows // self.size)

    def matrix(self, table: Table, f: int, generator: np.random.Generator) -> Matrix:
        """Return one row of equal weights per group."""
        order = generator.permutation(table.rows)
        ends = np.minimum(self.size * np.arange(self.rows_out(table.rows) + 1), table.rows)
        members = np.diff(ends)
        shape = (len(members), table.rows)
        return csr_array((np.repeat(1.0 / members, members), order, ends), shape=shape).sorted_indices()
