"""Loss and accuracy on held-out examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from demoa.core.examples import Examples

BATCH = 500


class Evaluation(NamedTuple):
    """Mean loss, and the share of examples whose label was found."""

    loss: float
    accuracy: float


def evaluate(module: nn.Module, examples: Examples, index: NDArray[np.intp]) -> Evaluation:
    """Return loss and accuracy of a model on some examples; dropout is off."""
    module.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(index), BATCH):
            images, labels = examples.batch(index[start : start + BATCH])
            scores = module(images)
            loss += float(functional.cross_entropy(scores, labels, reduction="sum"))
            right += int((scores.argmax(dim=1) == labels).sum())
    return Evaluation(loss / len(index), right / len(index))
