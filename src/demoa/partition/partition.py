"""What a partition is: from the labels of the training set to one set of examples per client."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from demoa.core.errors import ConfigError

Shard = NDArray[np.intp]
"""The examples of one client, as indices into the training set."""


class Partition(ABC):
    """A way of dealing out the training set. Subclasses are frozen dataclasses; their fields are its options."""

    @abstractmethod
    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return the examples of each honest client; a shard may come out empty."""


def check_labels(name: str, labels: NDArray[np.generic]) -> None:
    """Raise ConfigError for labels that are numbers to be predicted, of which no two need be equal."""
    if labels.dtype.kind == "f":
        raise ConfigError(f"{name} deals out labels, and this data set has numbers; use iid, by_label or similarity")


def dealt(examples: Shard, clients: int) -> list[Shard]:
    """Return the examples in `clients` consecutive pieces whose sizes differ by one at most."""
    return [np.asarray(piece, np.intp) for piece in np.array_split(examples, clients)]
