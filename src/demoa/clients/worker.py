"""The work of a client: gradients, or several local steps, at the parameters that the server sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from demoa.core.errors import ConfigError
from demoa.core.examples import Dataset
from demoa.core.flatten import FlatModel
from demoa.core.seeding import generator
from demoa.core.torch_seed import seeded_torch


class Update(NamedTuple):
    """What a client found: its (pseudo-)gradient, (d,), and the loss of its first batch, before any step."""

    vector: torch.Tensor
    loss: float


@dataclass(frozen=True)
class Worker:
    """One model that stands in for all clients, which differ only in the examples they hold.

    Args:
        model: Shared, as all clients of a round start from the same parameters.
        dataset: Its training set is what clients learn from; no client has a copy of its part.
        shards: Which examples each client holds, one entry per client.
        batch_size: Examples per gradient.
        local_steps: More than 1: that many steps of `local_lr`, sent as (x - x_local) / (local_lr * local_steps).
        local_lr: The step size of local steps.
        seed: What batches and dropout are drawn from, in streams of their own per round and client.
    """

    model: FlatModel
    dataset: Dataset
    shards: tuple[NDArray[np.intp], ...]
    batch_size: int
    local_steps: int
    local_lr: float
    seed: int

    def __post_init__(self) -> None:
        for client, shard in enumerate(self.shards):
            if len(shard) < self.batch_size:
                raise ConfigError(
                    f"client {client} holds {len(shard)} examples, fewer than a batch of {self.batch_size}; "
                    "use a smaller batch_size, fewer clients or a less uneven partition"
                )

    def update(self, client: int, round: int, parameters: torch.Tensor, *, flip_labels: bool = False) -> Update:
        """Return what a client finds in a round; the vector is a view that the next call overwrites."""
        draws = generator(self.seed, "batch", round, client)
        self.model.set_parameters(parameters)
        with seeded_torch(self.seed, "dropout", round, client):
            gradient, loss = self._step(draws, client, flip_labels)
            for _ in range(self.local_steps - 1):
                self.model.parameters.sub_(gradient, alpha=self.local_lr)
                gradient, _ = self._step(draws, client, flip_labels)
        if self.local_steps > 1:
            moved = self.model.parameters - self.local_lr * gradient
            gradient.copy_((parameters - moved) / (self.local_lr * self.local_steps))
        return Update(gradient, loss)

    def _step(self, draws: np.random.Generator, client: int, flip_labels: bool) -> Update:
        index = draws.choice(self.shards[client], self.batch_size, replace=False)
        self.model.module.train()
        return self._differentiate(index, flip_labels)

    def _differentiate(self, index: NDArray[np.intp], flip_labels: bool = False) -> Update:
        images, labels = self.dataset.train.batch(index)
        if flip_labels:
            labels = self.dataset.flipped(labels)
        loss = self.dataset.losses(self.model.module(images), labels).mean()
        return Update(self.model.differentiate(loss), loss.item())

    def independent_gradients(
        self, client: int, round: int, parameters: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return two gradients of a client on batches drawn independently, without dropout, (d,) each."""
        draws = generator(self.seed, "heterogeneity", round, client)
        self.model.set_parameters(parameters)
        self.model.module.eval()
        one, other = (draws.choice(self.shards[client], self.batch_size, replace=False) for _ in range(2))
        return self._differentiate(one).vector.clone(), self._differentiate(other).vector
