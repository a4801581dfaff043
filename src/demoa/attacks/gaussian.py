"""Noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.attacks.attack import AttackView, RowAttack
from demoa.core.arrays import dtype_name, like
from demoa.core.checks import positive


@dataclass(frozen=True)
class Gaussian(RowAttack):
    """The mean of the honest rows plus sigma times standard normal noise.

    Args:
        sigma: The standard deviation in each coordinate.
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        positive("gaussian: sigma", self.sigma)

    def row(self, view: AttackView) -> Any:
        """Draw one row, shared by all."""
        mean = view.honest.mean()
        dtype = np.dtype(dtype_name(mean))
        noise = view.generator.standard_normal(len(mean), dtype=dtype)
        return mean + self.sigma * like(mean, noise)
