"""Byz-VR-MARINA-PP in the momentum form that its authors propose for deep learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array, diags_array

from demoa.aggregation.mixing.clip import clip_factors
from demoa.core.checks import positive, require, share
from demoa.core.types import Floats, Matrix
from demoa.server.algorithms.algorithm import Algorithm, Recursion, RoundView, Running, accepted_rows

CLIPS = ("absolute", "aggregate", "step")


@dataclass(frozen=True)
class MarinaPP(Algorithm):
    """A running estimate g moves by clipped differences, and the step follows it.

        g <- g + Agg(clip_r(m_i - g), i in S_t)      x <- x - lr g

    with m_i <- (1 - alpha) m_i + alpha g_i for clients that take part. Nothing is clipped before the first
    step; a round without vectors makes none.

    Args:
        alpha: The weight of a fresh gradient.
        radius: lambda in the paper.
        clip: What r is: "absolute" (radius), "aggregate" (radius |g|) or "step" (radius times the length of the
            last step that x made).
        full_first_round: Whether the first round has alpha = 1 and asks everyone.

    Reference: Malinovsky, Richtarik, Horvath, Gorbunov, NeurIPS 2024.
    """

    delayed: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset({"alpha"})
    looks_at_table: ClassVar[bool] = True

    alpha: float = 0.9
    radius: float = 10.0
    clip: Literal["absolute", "aggregate", "step"] = "absolute"
    full_first_round: bool = True

    def __post_init__(self) -> None:
        share("marina_pp: alpha", self.alpha)
        positive("marina_pp: radius", self.radius)
        require(self.clip in CLIPS, "marina_pp: clip", self.clip, "one of " + ", ".join(CLIPS))

    def recursion(self, *, first: bool, alpha: float | None, p: float | Floats | None) -> Recursion:
        """Return the momentum of a client that takes part; alpha = 1 in a full first round."""
        weight = self._alpha(self.alpha, alpha, first)
        return Recursion(decay=1.0, keep=1.0 - weight, gain=weight)

    @property
    def estimate(self) -> Running:
        """Return the sum of all aggregates."""
        return Running(keep=1.0, gain=1.0)

    def selection(self, view: RoundView) -> Matrix | None:
        """Return the differences m_i - g of this round, clipped to the radius."""
        rows = accepted_rows(view)
        if rows is None or view.estimate is None:
            return None
        count = rows.shape[0]
        estimates = (np.ones(count), np.full(count, view.estimate), np.arange(count + 1))
        differences = rows - csr_array(estimates, shape=rows.shape)
        if view.last_lr is None:
            return differences
        products = view.products()
        length = float(np.sqrt(products[view.estimate, view.estimate]))
        unit = {"absolute": 1.0, "aggregate": length, "step": view.last_lr * length}[self.clip]
        squares = np.maximum(differences.multiply(differences @ products).sum(axis=1), 0.0)
        return csr_array(diags_array(clip_factors(squares, self.radius * unit)) @ differences)
