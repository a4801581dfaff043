"""One label per client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.core.errors import ConfigError
from demoa.partition.partition import Partition, Shard, check_labels


@dataclass(frozen=True)
class OneLabel(Partition):
    """Honest client i holds all examples of label i, and nothing else: as many clients as labels."""

    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return the examples of each label."""
        check_labels("one_label", labels)
        kinds = np.unique(labels)
        if len(kinds) != clients:
            raise ConfigError(
                f"one_label needs as many honest clients as labels: {clients} clients, {len(kinds)} labels"
            )
        return [np.flatnonzero(labels == kind) for kind in kinds]
