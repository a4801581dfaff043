"""Labels of very different frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.core.checks import require
from demoa.partition.partition import Partition, Shard, check_labels, dealt


@dataclass(frozen=True)
class LongTail(Partition):
    """Label l keeps the share ratio^(-l / (labels - 1)) of its examples; what is kept is dealt out IID.

    Args:
        ratio: How many times rarer the last label is than the first.

    Reference: Karimireddy, He, Jaggi, ICLR 2022 (the imbalanced case).
    """

    ratio: float = 10.0

    def __post_init__(self) -> None:
        require(self.ratio >= 1, "long_tail: ratio", self.ratio, "at least 1")

    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return one piece of the thinned training set per client."""
        check_labels("long_tail", labels)
        kinds = np.unique(labels)
        kept: list[Shard] = []
        for place, label in enumerate(kinds):
            examples = generator.permutation(np.flatnonzero(labels == label))
            share = self.ratio ** (-place / max(1, len(kinds) - 1))
            kept.append(examples[: max(1, round(share * len(examples)))])
        return dealt(generator.permutation(np.concatenate(kept)), clients)
