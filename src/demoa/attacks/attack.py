"""What an attack is: from what an omniscient adversary may know to what the Byzantine clients do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from demoa.core.types import Floats


class HonestRows(Protocol):
    """The honest rows that the adversary sees, (h, d), without a copy of them all."""

    def __len__(self) -> int:
        """Return h."""
        ...

    def row(self, place: int) -> Any:
        """Return one of the rows, (d,)."""
        ...

    def mean(self) -> Any:
        """Return the mean of the rows, (d,)."""
        ...

    def mean_and_deviation(self) -> tuple[Any, Any]:
        """Return mean and unbiased standard deviation of the rows, per coordinate, (d,) each."""
        ...

    def products(self) -> Floats:
        """Return the inner products of the rows, (h, h)."""
        ...

    def inner(self, vector: Any) -> Floats:
        """Return the inner product of each row with a vector, (h,)."""
        ...


@dataclass(frozen=True)
class AttackView:
    """What an adversary that sees everything may know when the honest clients of a round have answered.

    Attributes:
        round: The round, from 1.
        n: How many clients there are.
        byzantine: How many of them are the adversary's.
        honest: The honest rows: all of them if the server aggregates all, else those of this round (or the last
            ones known, if no honest client takes part).
        majority: Whether more Byzantine than honest clients take part in this round.
        parameters: x, (d,).
        start: x before the first round, (d,).
        lr: The step size.
        aggregate: Gives what the server would make of the round if all Byzantine rows of it were this one, (d,).
        generator: What the attack draws from.
        target: The row, (d,), of the client that `Attack.target` chose, as it was last known; None if it chose none,
            or one that never took part.
    """

    round: int
    n: int
    byzantine: int
    honest: HonestRows
    majority: bool
    parameters: Any
    start: Any
    lr: float
    aggregate: Callable[[Any], Any]
    generator: np.random.Generator
    target: Any | None = None


class Attack:
    """A way of lying. Subclasses are frozen dataclasses; their fields are its options.

    There are two kinds. One spoils what a client would honestly send: its labels (`flips_labels`) or its vector
    (`spoil`). The other chooses the row that it wants the server to hold (`row`), in collusion, seeing everything.
    """

    flips_labels: ClassVar[bool] = False
    """Whether Byzantine clients train on labels turned around: y becomes classes - 1 - y."""

    colludes: ClassVar[bool] = True
    """Whether `row` is asked, once a round, for the row that all Byzantine clients of the round then have."""

    def spoil(self, vector: Any) -> Any:
        """Return what a client sends in place of the honest vector, (d,), if the attack does not collude."""
        return vector

    def target(self, honest: int, first: Callable[[int], Any], generator: np.random.Generator) -> int | None:
        """Return the honest client that the whole attack is about, by its place among them; None if it needs none.

        It is asked when first needed, and again where a run goes on after an interrupt.

        Args:
            honest: How many honest clients there are.
            first: Gives what one of them finds in round 1, (d,), by its place among them; the next call overwrites it.
            generator: Draws the same each time.
        """
        return None

    def row(self, view: AttackView) -> Any | None:
        """Return the row, (d,), that the server is to hold; None to behave honestly in this round."""
        return None


@dataclass(frozen=True)
class NoAttack(Attack):
    """Byzantine clients behave; for comparison."""

    colludes: ClassVar[bool] = False


class RowAttack(Attack):
    """An attack that chooses rows."""

    @abstractmethod
    def row(self, view: AttackView) -> Any | None:
        """Return the row, (d,), that the server is to hold; None to behave honestly in this round."""
