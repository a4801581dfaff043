"""Byz-VR-MARINA-PP in the momentum form that its authors propose for deep learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from demoa.aggregation.mixing.clip import clip_factors
from demoa.core.registry import require
from demoa.core.types import Floats
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, accepted_rows
from demoa.server.algorithms.demoa import check_alpha

CLIPS = ("absolute", "aggregate", "step")


@dataclass(frozen=True)
class MarinaPP(Algorithm):
    """A running estimate g moves by clipped differences, and the step follows it.

        g <- g + Agg(clip_r(m_i - g), i in S_t)      x <- x - lr g

    with m_i <- (1 - alpha) m_i + alpha g_i for clients that take part. Nothing is clipped in the first
    round, which asks everyone; a round without vectors makes no step.

    Args:
        alpha: The weight of a fresh gradient.
        radius: lambda in the paper.
        clip: What r is: "absolute" (radius), "aggregate" (radius |g|) or "step" (radius |x_t - x_{t-1}|,
            which is radius lr |g|).
        full_first_round: Whether the first round asks everyone.

    Reference: Malinovsky, Richtarik, Horvath, Gorbunov, NeurIPS 2024.
    """

    delayed: ClassVar[bool] = False
    uses_estimate: ClassVar[bool] = True

    alpha: float = 0.9
    radius: float = 10.0
    clip: Literal["absolute", "aggregate", "step"] = "absolute"
    full_first_round: bool = True

    def __post_init__(self) -> None:
        check_alpha("marina_pp", self.alpha)
        require(self.radius > 0, "marina_pp: radius", self.radius, "above 0")
        require(self.clip in CLIPS, "marina_pp: clip", self.clip, "one of " + ", ".join(CLIPS))

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return the momentum of a client that takes part; alpha = 1 in a full first round."""
        full = first and self.full_first_round
        alpha = alpha if alpha is not None else 1.0 if full else self.alpha
        check_alpha("marina_pp", alpha)
        return Recursion(decay=1.0, keep=1.0 - alpha, gain=alpha)

    def selection(self, view: RoundView) -> Floats | None:
        """Return the differences m_i - g of this round, clipped to the radius."""
        differences = accepted_rows(view)
        if differences is None or view.estimate is None:
            return None
        differences[:, view.estimate] -= 1.0
        if view.first:
            return differences
        products = view.products()
        estimate_norm = float(np.sqrt(products[view.estimate, view.estimate]))
        factor = {"absolute": 1.0, "aggregate": estimate_norm, "step": view.lr * estimate_norm}
        squares = np.einsum("ij,jk,ik->i", differences, products, differences)
        return differences * clip_factors(np.maximum(squares, 0.0), self.radius * factor[self.clip])[:, None]
