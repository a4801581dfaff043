"""Shift back: behave until a round is owned, then undo the training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.checks import positive


@dataclass(frozen=True)
class ShiftBack(RowAttack):
    """Honest, but for rounds with a Byzantine majority: then (x - x_0) / lr, which takes x back to its start.

    Args:
        strength: 1 goes back to the start, more goes past it.

    Reference: Malinovsky, Richtarik, Horvath, Gorbunov, NeurIPS 2024.
    """

    strength: float = 1.0

    def __post_init__(self) -> None:
        positive("shift_back: strength", self.strength)

    def row(self, view: AttackView) -> Any | None:
        """Return the way back in a majority round, else None."""
        if not view.majority:
            return None
        return (self.strength / view.lr) * (view.parameters - view.start)
