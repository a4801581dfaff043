"""The task: digits, dealt out to the clients, and a small network."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from demoa.data import Dataset, load_dataset

BATCH = 32


def dataset() -> Dataset:
    """Return the digits that come with demoa."""
    return load_dataset("digits")


def network() -> nn.Module:
    """Return the network that is trained."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def batches(client: int, clients: int, *, flip: bool = False) -> Iterator[Any]:
    """Yield batches of a client's part of the training set, drawn by torch's generator; `flip` turns labels around."""
    train = dataset().train
    part = np.array_split(np.random.default_rng(0).permutation(len(train)), clients)[client]
    while True:
        images, labels = train.batch(part[torch.randperm(len(part))[:BATCH].numpy()])
        yield images, 9 - labels if flip else labels


def loss(model: nn.Module, batch: Any) -> torch.Tensor:
    """Return the mean loss on a batch."""
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def accuracy(model: nn.Module) -> float:
    """Return the share of the test set that is classified right."""
    test = dataset().test
    images, labels = test.batch(np.arange(len(test)))
    model.eval()
    with torch.no_grad():
        return float((model(images).argmax(dim=1) == labels).float().mean())
