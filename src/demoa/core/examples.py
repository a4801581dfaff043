"""What a data set is: labelled examples, held once and handed out in batches, and what is to be learned of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from demoa.core.checks import require


@dataclass(frozen=True)
class Examples:
    """Labelled images, kept as they came and normalised when they are handed out.

    Attributes:
        images: (N, channels, height, width), uint8 or float32.
        labels: (N,), int64, or float32 where numbers are to be predicted.
        mean: Subtracted from each channel, (channels,), after uint8 is scaled to [0, 1].
        deviation: Divides each channel then, (channels,).
    """

    images: torch.Tensor
    labels: torch.Tensor
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, index: NDArray[np.intp] | slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Return normalised images, (b, channels, height, width) float32 in channels-last order, and labels, (b,)."""
        chosen = index if isinstance(index, slice) else torch.from_numpy(index)
        images = self.images[chosen]
        scaled = images.float() / 255 if images.dtype == torch.uint8 else images
        mean = scaled.new_tensor(self.mean).view(-1, 1, 1)
        deviation = scaled.new_tensor(self.deviation).view(-1, 1, 1)
        normalised = (scaled - mean) / deviation
        return normalised.contiguous(memory_format=torch.channels_last), self.labels[chosen]

    def to(self, device: torch.device) -> Examples:
        """Return the same examples on a device."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))


OBJECTIVES = ("label", "number", "value")


@dataclass(frozen=True)
class Dataset:
    """A training set, a test set, and what a model is to do with them.

    Attributes:
        train: What clients learn from.
        test: What the model is judged on.
        classes: How many labels there are.
        objective: "label": the model scores every label, (b, classes), and pays cross-entropy. "number": it predicts
            the label, (b, 1), and pays half the squared error. "value": its output, (b, 1), is what it pays.
        held_out: The share of the training set that is kept for tuning.
    """

    train: Examples
    test: Examples
    classes: int
    objective: str = "label"
    held_out: float = 0.1

    def __post_init__(self) -> None:
        require(self.objective in OBJECTIVES, "objective", self.objective, "one of " + ", ".join(OBJECTIVES))
        wanted = torch.float32 if self.objective == "number" else torch.int64
        for part in (self.train, self.test):
            require(part.labels.dtype == wanted, "labels", part.labels.dtype, str(wanted))

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return int(self.train.images.shape[1])

    @property
    def size(self) -> int:
        """Width of an image, and its height, if it is one."""
        return int(self.train.images.shape[3])

    def losses(self, output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return what the model pays for each example, (b,)."""
        if self.objective == "label":
            return functional.cross_entropy(output, labels, reduction="none")
        return output[:, 0] if self.objective == "value" else 0.5 * (output[:, 0] - labels) ** 2

    def flipped(self, labels: torch.Tensor) -> torch.Tensor:
        """Return the labels turned around: classes - 1 - y, or -y where they are numbers."""
        return -labels if self.objective == "number" else self.classes - 1 - labels

    def to(self, device: torch.device) -> Dataset:
        """Return the same data set on a device."""
        return replace(self, train=self.train.to(device), test=self.test.to(device))
