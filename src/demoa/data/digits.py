"""Handwritten digits, 8 x 8, small enough to ship with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import torch

from demoa.core.examples import Dataset, Examples
from demoa.core.seeding import generator

TEST_EXAMPLES = 360


def digits() -> Dataset:
    """Return 1,437 training and 360 test images of the digits 0 to 9, 8 x 8 pixels, values 0 to 16.

    The split is fixed. From the UCI repository: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten
    Digits, 1998 (CC BY 4.0); the test part of it, as scikit-learn ships it.
    """
    with files("demoa.data").joinpath("files/digits.npz").open("rb") as file, np.load(file) as arrays:
        images = torch.from_numpy(arrays["x"].astype(np.float32)[:, None] / 16)
        labels = torch.from_numpy(arrays["y"].astype(np.int64))
    order = torch.from_numpy(generator(0, "digits").permutation(len(labels)))
    train, test = order[TEST_EXAMPLES:], order[:TEST_EXAMPLES]
    return Dataset(
        Examples(images[train], labels[train], (0.305,), (0.376,)),
        Examples(images[test], labels[test], (0.305,), (0.376,)),
        classes=10,
    )
