"""Inner product manipulation: a row that points the other way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.checks import positive


@dataclass(frozen=True)
class Ipm(RowAttack):
    """-epsilon times the mean of the honest rows.

    Args:
        epsilon: Small ones hide, large ones push.

    Reference: Xie, Koyejo, Gupta, UAI 2019.
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        positive("ipm: epsilon", self.epsilon)

    def row(self, view: AttackView) -> Any:
        """Return the reversed mean."""
        return -self.epsilon * view.honest.mean()
