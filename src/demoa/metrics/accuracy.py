"""Loss and accuracy on held-out examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from demoa.core.examples import Dataset, Examples

BATCH = 500
"""So many losses are added up at once."""
PIECE = 50
"""So many examples go through the model at once, on a processor: what a whole batch leaves in memory fits no cache."""


class Evaluation(NamedTuple):
    """Mean loss, and the share of examples whose label was found; None where there are no labels to be found."""

    loss: float
    accuracy: float | None


def evaluate(module: nn.Module, dataset: Dataset, examples: Examples, index: NDArray[np.intp]) -> Evaluation:
    """Return loss and accuracy of a model on some examples of a data set; dropout is off."""
    module.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(index), BATCH):
            images, labels = examples.batch(index[start : start + BATCH])
            pieces = torch.split(images, PIECE if images.device.type == "cpu" else BATCH)
            output = torch.cat([module(piece) for piece in pieces])
            loss += float(dataset.losses(output, labels).sum())
            right += int((output.argmax(dim=1) == labels).sum())
    return Evaluation(loss / len(index), right / len(index) if dataset.objective == "label" else None)
