"""Independent coins: one probability for all clients, or one each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.core.checks import require
from demoa.core.errors import ConfigError
from demoa.core.types import Floats
from demoa.sampling.sampling import Sampling


@dataclass(frozen=True)
class Bernoulli(Sampling):
    """Each client takes part with probability p, on its own, as in the paper.

    Args:
        p: The probability, one for all rounds, or one per round; the last one then goes on.

    >>> Bernoulli(p=1.0).clients(1, 3, np.random.default_rng(0))
    [0, 1, 2]
    """

    p: float | tuple[float, ...] = 0.1

    def __post_init__(self) -> None:
        values = np.atleast_1d(self.p)
        require(len(values) > 0 and bool(np.all((values > 0) & (values <= 1))), "bernoulli: p", self.p, ALLOWED)

    def clients(self, round: int, n: int, generator: np.random.Generator) -> list[int]:
        """Toss one coin per client."""
        tossed: list[int] = np.flatnonzero(generator.random(n) < self.probability(round, n)).tolist()
        return tossed

    def probability(self, round: int, n: int) -> float:
        """Return p of this round."""
        return float(self.p[min(round, len(self.p)) - 1]) if isinstance(self.p, tuple) else self.p


@dataclass(frozen=True)
class PerClient(Sampling):
    """Client i takes part with probability p_i, on its own.

    Args:
        p: One probability per client.
    """

    p: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        values = np.array(self.p)
        require(len(values) > 0 and bool(np.all((values > 0) & (values <= 1))), "per_client: p", self.p, ALLOWED)

    def clients(self, round: int, n: int, generator: np.random.Generator) -> list[int]:
        """Toss one coin per client."""
        tossed: list[int] = np.flatnonzero(generator.random(n) < self.probability(round, n)).tolist()
        return tossed

    def probability(self, round: int, n: int) -> Floats:
        """Return all p_i, (n,)."""
        if len(self.p) != n:
            raise ConfigError(f"per_client: p must name all {n} clients, got {len(self.p)} probabilities")
        return np.array(self.p)


ALLOWED = "above 0 and at most 1"
