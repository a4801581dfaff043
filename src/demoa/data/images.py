"""The public image sets that are fetched once."""

from __future__ import annotations

import numpy as np
import torch

from demoa.core.examples import Dataset, Examples
from demoa.data import cache


def mnist() -> Dataset:
    """Return 60,000 training and 10,000 test images of handwritten digits, 28 x 28 (LeCun, Cortes, Burges)."""
    return _dataset("mnist", (0.1307,), (0.3081,))


def cifar10() -> Dataset:
    """Return 50,000 training and 10,000 test colour images of ten kinds of things, 32 x 32 (Krizhevsky 2009)."""
    return _dataset("cifar10", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))


def _dataset(name: str, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Dataset:
    arrays = cache.load(name)

    def part(which: str) -> Examples:
        labels = torch.from_numpy(arrays[f"{which}_labels"].astype(np.int64))
        return Examples(torch.from_numpy(arrays[f"{which}_images"]), labels, mean, deviation)

    return Dataset(part("train"), part("test"), classes=10)
