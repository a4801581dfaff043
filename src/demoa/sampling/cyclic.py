"""Clients take turns in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.core.checks import require
from demoa.core.errors import ConfigError
from demoa.sampling.sampling import Sampling


@dataclass(frozen=True)
class Cyclic(Sampling):
    """The next `size` clients in turn, around and around, as when groups are awake at different hours.

    Args:
        size: How many clients take part.

    >>> [Cyclic(size=2).clients(t, 5, np.random.default_rng(0)) for t in (1, 2, 3)]
    [[0, 1], [2, 3], [0, 4]]
    """

    size: int = 3

    def __post_init__(self) -> None:
        require(self.size >= 1, "cyclic: size", self.size, "at least 1")

    def clients(self, round: int, n: int, generator: np.random.Generator) -> list[int]:
        """Return the next clients in turn; nothing is drawn."""
        self.probability(round, n)
        first = (round - 1) * self.size
        return sorted((first + turn) % n for turn in range(self.size))

    def probability(self, round: int, n: int) -> float:
        """Return size / n."""
        if self.size > n:
            raise ConfigError(f"cyclic: size must be at most the {n} clients, got {self.size}")
        return self.size / n
