"""A little is enough: a shift that hides in the spread of the honest rows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.checks import real_number


@dataclass(frozen=True)
class Alie(RowAttack):
    """mean - z std of the honest rows, per coordinate.

    Args:
        z: How many standard deviations; None means the largest shift that the median of all n would still cover,
            z = Phi^-1((n - f - s) / (n - f)), s = floor(n / 2 + 1) - f: 0.2533 at n = 25, f = 5.

    Reference: Baruch, Baruch, Goldberg, NeurIPS 2019.
    """

    z: float | None = None

    def __post_init__(self) -> None:
        if self.z is not None:
            real_number("alie: z", self.z, "a number")

    def row(self, view: AttackView) -> Any:
        """Return the shifted mean."""
        mean, deviation = view.honest.mean_and_deviation()
        z = covered_shift(view.n, view.byzantine) if self.z is None else self.z
        return mean - z * deviation


def covered_shift(n: int, f: int) -> float:
    """Return the z of the paper's formula; 0 where it has none.

    >>> round(covered_shift(25, 5), 4)
    0.2533
    """
    supporters = n // 2 + 1 - f
    share = (n - f - supporters) / (n - f)
    return NormalDist().inv_cdf(share) if 0 < share < 1 else 0.0
