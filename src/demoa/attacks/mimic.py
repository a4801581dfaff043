"""Mimic: all Byzantine clients copy one honest client, and so count it many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.arrays import dtype_name, like


@dataclass(frozen=True)
class Mimic(RowAttack):
    """The row of the honest client with the largest part along the direction in which honest rows differ most.

    The direction is one power step from a Gaussian vector, which is the same in every round.

    Reference: Karimireddy, He, Jaggi, ICLR 2022.
    """

    def row(self, view: AttackView) -> Any:
        """Return a copy of the chosen client's row."""
        mean = view.honest.mean()
        start = view.generator.standard_normal(len(mean), dtype=np.dtype(dtype_name(mean)))
        along = view.honest.inner(like(mean, start))
        products = view.honest.products()
        centred = products - products.mean(axis=0)
        return view.honest.row(int(np.argmax(np.abs(centred @ (along - along.mean())))))
