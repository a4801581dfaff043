"""Every client sees the same distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.partition.partition import Partition, Shard, dealt


@dataclass(frozen=True)
class Iid(Partition):
    """The training set, shuffled and cut into equal pieces."""

    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return one piece per client."""
        return dealt(generator.permutation(len(labels)), clients)
