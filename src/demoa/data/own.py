"""Data of the user's own: an .npz file, or a function that returns a data set."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demoa.core.errors import ConfigError
from demoa.core.examples import Dataset, Examples
from demoa.core.imports import imported
from demoa.core.seeding import generator

TEST_SHARE = 0.2


def from_npz(path: Path) -> Dataset:
    """Return the data set in an .npz file: x, (N, size, size) or (N, channels, size, size), and y, (N,) from 0 on.

    A fifth of it, drawn once and for all, is the test set; x_test and y_test in the file take its place.
    """
    try:
        with np.load(path) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{path} cannot be read as an .npz file: {error}") from error
    images, labels = _checked(path, found, "x", "y")
    if "x_test" in found:
        test_images, test_labels = _checked(path, found, "x_test", "y_test")
    else:
        order = generator(0, "test split").permutation(len(labels))
        cut = round(TEST_SHARE * len(order))
        test_images, test_labels = images[order[:cut]], labels[order[:cut]]
        images, labels = images[order[cut:]], labels[order[cut:]]
    # One mean and deviation per channel, of the training set, on the scale that batches are normalised in.
    scaled = images.float() / 255 if images.dtype == torch.uint8 else images
    mean = tuple(scaled.mean(dim=(0, 2, 3)).tolist())
    deviation = tuple(scaled.std(dim=(0, 2, 3)).clamp(min=1e-6).tolist())
    return Dataset(
        Examples(images, labels, mean, deviation),
        Examples(test_images, test_labels, mean, deviation),
        classes=int(max(labels.max(), test_labels.max())) + 1,
    )


def _checked(path: Path, arrays: dict[str, Any], x: str, y: str) -> tuple[torch.Tensor, torch.Tensor]:
    if x not in arrays or y not in arrays:
        raise ConfigError(f"{path} must hold the arrays {x} and {y}; it holds: {', '.join(sorted(arrays))}")
    images, labels = arrays[x], arrays[y]
    if images.ndim == 3:
        images = images[:, None]
    square = images.ndim == 4 and images.shape[2] == images.shape[3]
    if not square or images.dtype.kind not in "fu" or len(images) == 0:
        raise ConfigError(f"{path}: {x} must be (N, size, size) or (N, channels, size, size), uint8 or float")
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ConfigError(f"{path}: {y} must be (N,) whole numbers from 0 on, one for each of {len(images)} images")
    kept = images if images.dtype == np.uint8 else images.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(kept)), torch.from_numpy(labels.astype(np.int64))


def from_function(path: str) -> Dataset:
    """Return what the function at package.module:name returns, which must be a `demoa.core.examples.Dataset`."""
    try:
        made = imported("data set", path)()
    except TypeError as error:
        raise ConfigError(f"data set {path!r} must be a function without arguments: {error}") from error
    if not isinstance(made, Dataset):
        raise ConfigError(f"data set {path!r} must return a demoa.core.examples.Dataset, got {type(made).__name__}")
    return made
