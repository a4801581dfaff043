"""What a sampling is: from the number of a round to the clients that take part."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from demoa.core.types import Floats


class Sampling(ABC):
    """A way of choosing clients. Subclasses are frozen dataclasses; their fields are its options."""

    @abstractmethod
    def clients(self, round: int, n: int, generator: np.random.Generator) -> list[int]:
        """Return the clients of this round, sorted; rounds count from 1."""

    @abstractmethod
    def probability(self, round: int, n: int) -> float | Floats:
        """Return how often a client takes part, one number or one per client, (n,): the p of DeMoA's decay."""
