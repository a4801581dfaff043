"""A fixed number of clients each round, drawn without replacement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from demoa.core.checks import require
from demoa.core.errors import ConfigError
from demoa.sampling.sampling import Sampling


@dataclass(frozen=True)
class FixedSize(Sampling):
    """`size` clients, drawn without replacement.

    Args:
        size: How many clients take part.
    """

    size: int = 3

    def __post_init__(self) -> None:
        require(self.size >= 1, "fixed_size: size", self.size, "at least 1")

    def clients(self, round: int, n: int, generator: np.random.Generator) -> list[int]:
        """Draw the clients."""
        self.probability(round, n)
        return sorted(generator.choice(n, self.size, replace=False).tolist())

    def probability(self, round: int, n: int) -> float:
        """Return size / n."""
        if self.size > n:
            raise ConfigError(f"fixed_size: size must be at most the {n} clients, got {self.size}")
        return self.size / n
