"""Mimic: all Byzantine clients copy one honest client, and so count it many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.arrays import dtype_name, like
from demoa.core.types import Floats


@dataclass(frozen=True)
class Mimic(RowAttack):
    """The row of the honest client with the largest part along the direction in which honest clients differ most.

    The direction is one power step from a Gaussian vector, which is always the same.

    Args:
        fixed: Choose the client once, by what honest clients find in round 1. If not, choose anew in each round, by
            the rows that are seen.

    Reference: Karimireddy, He, Jaggi, ICLR 2022.
    """

    fixed: bool = True

    def target(self, honest: int, first: Callable[[int], Any], generator: np.random.Generator) -> int | None:
        """Return the client that is copied from the first round to the last."""
        if not self.fixed:
            return None
        start = _gaussian(first(0), generator)
        along = np.array([float(first(place) @ start) for place in range(honest)])
        direction = sum(float(part) * first(place) for place, part in enumerate(along - along.mean()))
        return _farthest(np.array([float(first(place) @ direction) for place in range(honest)]))

    def row(self, view: AttackView) -> Any | None:
        """Return a copy of the chosen client's row; None, to behave, as long as nobody has seen one."""
        if self.fixed:
            return view.target
        along = view.honest.inner(_gaussian(view.honest.mean(), view.generator))
        return view.honest.row(_farthest(view.honest.products() @ (along - along.mean())))


def _gaussian(vector: Any, generator: np.random.Generator) -> Any:
    """Return a Gaussian vector of the same kind as another, (d,)."""
    return like(vector, generator.standard_normal(len(vector), dtype=np.dtype(dtype_name(vector))))


def _farthest(parts: Floats) -> int:
    return int(np.argmax(np.abs(parts - parts.mean())))
