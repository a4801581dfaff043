"""Label shares drawn from a Dirichlet distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.core.checks import require
from demoa.partition.partition import Partition, Shard, check_labels


@dataclass(frozen=True)
class Dirichlet(Partition):
    """Each label is dealt out in shares drawn from Dirichlet(alpha, ..., alpha).

    Args:
        alpha: Small: each label goes to few clients. Large: nearly IID.

    Reference: Hsu, Qi, Brown, 2019.
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        require(self.alpha > 0, "dirichlet: alpha", self.alpha, "above 0")

    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return what each client got of each label."""
        check_labels("dirichlet", labels)
        pieces: list[list[Shard]] = [[] for _ in range(clients)]
        for label in np.unique(labels):
            examples = generator.permutation(np.flatnonzero(labels == label))
            shares = generator.dirichlet(np.full(clients, self.alpha))
            cuts = np.round(np.cumsum(shares)[:-1] * len(examples)).astype(int)
            for client, piece in enumerate(np.split(examples, cuts)):
                pieces[client].append(piece)
        return [np.concatenate(mine) for mine in pieces]
