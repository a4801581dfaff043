"""What a data set is: labelled examples, held once and handed out in batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True)
class Examples:
    """Labelled images, kept as they came and normalised when they are handed out.

    Attributes:
        images: (N, channels, size, size), uint8 or float32.
        labels: (N,), int64.
        mean: Subtracted from each channel, (channels,), after uint8 is scaled to [0, 1].
        deviation: Divides each channel then, (channels,).
    """

    images: torch.Tensor
    labels: torch.Tensor
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, index: NDArray[np.intp] | slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Return normalised images, (b, channels, size, size) float32 in channels-last order, and labels, (b,)."""
        chosen = index if isinstance(index, slice) else torch.from_numpy(index)
        images = self.images[chosen]
        scaled = images.float() / 255 if images.dtype == torch.uint8 else images
        mean = torch.tensor(self.mean).view(-1, 1, 1)
        deviation = torch.tensor(self.deviation).view(-1, 1, 1)
        normalised = (scaled - mean) / deviation
        return normalised.contiguous(memory_format=torch.channels_last), self.labels[chosen]


@dataclass(frozen=True)
class Dataset:
    """A training set, a test set, and how many labels there are."""

    train: Examples
    test: Examples
    classes: int

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return int(self.train.images.shape[1])

    @property
    def size(self) -> int:
        """Height and width of an image."""
        return int(self.train.images.shape[2])
