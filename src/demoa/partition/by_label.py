"""Clients see few labels each: sorted shards, and mixtures of sorted and shuffled ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demoa.core.checks import require
from demoa.partition.partition import Partition, Shard, dealt


@dataclass(frozen=True)
class ByLabel(Partition):
    """The training set, sorted by label and cut into equal consecutive pieces: the paper's non-IID split.

    Reference: Karimireddy, He, Jaggi, ICLR 2022 (the balanced case).
    """

    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return one piece per client; examples of one label come in random order."""
        return dealt(_sorted_by_label(labels, generator.permutation(len(labels))), clients)


@dataclass(frozen=True)
class Similarity(Partition):
    """A share gamma of the training set is dealt out at random, the rest sorted by label.

    Args:
        gamma: 1 is IID, 0 is by label.

    Reference: Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, ICML 2020 ("s % similarity").
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        require(0.0 <= self.gamma <= 1.0, "similarity: gamma", self.gamma, "from 0 to 1")

    def shards(self, labels: NDArray[np.int64], clients: int, generator: np.random.Generator) -> list[Shard]:
        """Return a random piece and a sorted piece per client, joined."""
        order = generator.permutation(len(labels))
        cut = round(self.gamma * len(labels))
        alike = dealt(order[:cut], clients)
        sorted_rest = dealt(_sorted_by_label(labels, order[cut:]), clients)
        return [np.concatenate([one, other]) for one, other in zip(alike, sorted_rest, strict=True)]


def _sorted_by_label(labels: NDArray[np.int64], examples: Shard) -> Shard:
    return examples[np.argsort(labels[examples], kind="stable")]
