"""Who took part in a recorded run."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from demoa.core.errors import ConfigError
from demoa.core.types import Floats
from demoa.sampling.sampling import Sampling


@dataclass(frozen=True)
class Trace(Sampling):
    """The clients of a recorded run; rounds that are not in the file have none.

    Args:
        path: A CSV file with the columns round (from 1) and client (from 0), one line per answer.
    """

    path: str

    def clients(self, round: int, n: int, generator: np.random.Generator) -> list[int]:
        """Look the round up; nothing is drawn."""
        self.probability(round, n)
        return sorted(self._rounds.get(round, set()))

    def probability(self, round: int, n: int) -> Floats:
        """Return how often each client takes part over the whole trace, (n,), one answer at the least."""
        strangers = {client for found in self._rounds.values() for client in found if not 0 <= client < n}
        if strangers:
            raise ConfigError(f"{self.path} names client {min(strangers)}; clients count from 0 to {n - 1}")
        counts = np.ones(n)
        for found in self._rounds.values():
            counts[list(found)] += 1
        return np.minimum(1.0, np.maximum(counts - 1, 1) / max(self._rounds, default=1))

    @cached_property
    def _rounds(self) -> dict[int, set[int]]:
        rounds: dict[int, set[int]] = {}
        try:
            with Path(self.path).open(newline="") as file:
                for line, entry in enumerate(csv.DictReader(file), start=2):
                    try:
                        rounds.setdefault(int(entry["round"]), set()).add(int(entry["client"]))
                    except (KeyError, TypeError, ValueError):
                        message = f"{self.path}, line {line}: expected whole numbers in columns round and client"
                        raise ConfigError(message) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"trace: cannot read {self.path}: {error}") from None
        if not rounds or min(rounds) < 1:
            raise ConfigError(f"{self.path}: rounds count from 1, and there must be at least one line")
        return rounds
