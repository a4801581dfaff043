"""What a rule is: from the table of the rows to a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from demoa.aggregation.decision import Decision
from demoa.aggregation.table import Table
from demoa.core.errors import ToleranceError


class Rule(ABC):
    """A robust aggregation rule. Subclasses are frozen dataclasses; their fields are its options.

    To write one's own: say how many faulty rows it stands, and decide from the table.
    """

    uses_centre: ClassVar[bool] = False
    """Whether it starts from the previous aggregate, which the server then keeps as one more row."""

    names_a_row: ClassVar[bool] = False
    """Whether an option points at one row, so that every client must keep its place among the rows."""

    looks_at_table: ClassVar[bool] = True
    """Whether it needs the inner products of all rows. A rule that does not can stand far more clients."""

    def check(self, rows: int, f: int) -> None:  # noqa: B027
        """Raise ConfigError if the options do not fit that many rows, or the work would never end."""

    @abstractmethod
    def tolerance(self, rows: int) -> int:
        """Return the largest number of faulty rows out of `rows` that the definition admits."""

    @abstractmethod
    def decide(self, table: Table, f: int) -> Decision:
        """Return how the rows of the table are put together, up to f of them being faulty."""


def minority(rows: int) -> int:
    """Return the largest f with 2 f < rows, which no rule can exceed.

    >>> [minority(n) for n in (1, 2, 3, 25)]
    [0, 0, 1, 12]
    """
    return (rows - 1) // 2


def check_tolerance(what: str, rows: int, f: int, most: int) -> None:
    """Raise ToleranceError unless 0 <= f <= most."""
    if not 0 <= f <= most:
        raise ToleranceError(
            f"{what} over {rows} rows tolerates f from 0 to {most}, got f = {f}; "
            "lower f, use more clients or smaller buckets, or choose another rule"
        )
