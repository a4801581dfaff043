"""Data of the user's own: an .npz file, or whatever a function or class of theirs returns."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import data as torch_data

from demoa.core.errors import ConfigError
from demoa.core.examples import Dataset, Examples
from demoa.core.imports import imported
from demoa.core.seeding import generator

TEST_SHARE = 0.2
"""How much of the examples is drawn, once and for all, as the test set, where there is none."""

Pair = tuple[torch.Tensor, torch.Tensor]
"""Images, (N, channels, size, size), and labels, (N,)."""


def from_npz(path: Path) -> Dataset:
    """Return the data set in an .npz file: x, (N, size, size) or (N, channels, size, size), and y, (N,) from 0 on.

    A fifth of it, drawn once and for all, is the test set; x_test and y_test in the file take its place. Each
    channel is normalised.
    """
    try:
        with np.load(path) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{path} cannot be read as an .npz file: {error}") from error

    def part(x: str, y: str) -> Pair:
        if x not in found or y not in found:
            raise ConfigError(f"{path} must hold the arrays {x} and {y}; it holds: {', '.join(sorted(found))}")
        return _checked(f"{path}: {x}", found[x], f"{path}: {y}", found[y])

    train, test = _split(part("x", "y"), part("x_test", "y_test") if "x_test" in found else None)
    # One mean and deviation per channel, of the training set, on the scale that batches are normalised in.
    scaled = train[0].float() / 255 if train[0].dtype == torch.uint8 else train[0]
    mean = tuple(scaled.mean(dim=(0, 2, 3)).tolist())
    deviation = tuple(scaled.std(dim=(0, 2, 3)).clamp(min=1e-6).tolist())
    return _dataset(Examples(*train, mean, deviation), Examples(*test, mean, deviation))


def from_import(path: str, options: Mapping[str, Any]) -> Dataset:
    """Return the data set that the function or class at package.module:name makes of the options.

    That is a `demoa.core.examples.Dataset`, a torch Dataset of pairs (image, label), or two of them, for training
    and testing. Images of torch Datasets are taken as they are.
    """
    make = imported("data set", path)
    try:
        made = make(**options)
    except TypeError as error:
        raise ConfigError(f"data set {path!r} must be a function or class that takes its options: {error}") from error
    if isinstance(made, Dataset):
        return made
    parts = made if isinstance(made, tuple) else (made,)
    if not 1 <= len(parts) <= 2 or not all(isinstance(part, torch_data.Dataset) for part in parts):
        kind = type(made).__name__
        raise ConfigError(f"data set {path!r} must return a demoa Dataset, or one or two torch Datasets, got {kind}")
    train, test = _split(_all_of(path, parts[0]), _all_of(path, parts[1]) if len(parts) > 1 else None)
    return _dataset(Examples(*train), Examples(*test))


def _all_of(path: str, dataset: Any) -> Pair:
    """Return all examples of a torch Dataset."""
    if isinstance(dataset, torch_data.IterableDataset) or not hasattr(dataset, "__len__"):
        raise ConfigError(f"data set {path!r} must have a length and examples by index, not only an iterator")
    pairs = [dataset[place] for place in range(len(dataset))]
    try:
        images = np.stack([np.asarray(image) for image, _ in pairs])
        labels = np.array([np.asarray(label) for _, label in pairs])
    except (TypeError, ValueError) as error:
        raise ConfigError(f"data set {path!r} must hold pairs (image, label), images of one shape: {error}") from error
    return _checked(f"data set {path!r}: images", images, f"data set {path!r}: labels", labels)


def _checked(x: str, images: NDArray[Any], y: str, labels: NDArray[Any]) -> Pair:
    if images.ndim == 3:
        images = images[:, None]
    square = images.ndim == 4 and images.shape[2] == images.shape[3]
    if not square or images.dtype.kind not in "fu" or len(images) == 0:
        raise ConfigError(f"{x} must be (N, size, size) or (N, channels, size, size), uint8 or float")
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or labels.min() < 0:
        raise ConfigError(f"{y} must be (N,) whole numbers from 0 on, one for each of {len(images)} images")
    kept = images if images.dtype == np.uint8 else images.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(kept)), torch.from_numpy(labels.astype(np.int64))


def _split(train: Pair, test: Pair | None) -> tuple[Pair, Pair]:
    if test is not None:
        return train, test
    images, labels = train
    order = torch.from_numpy(generator(0, "test split").permutation(len(labels)))
    cut = round(TEST_SHARE * len(order))
    return (images[order[cut:]], labels[order[cut:]]), (images[order[:cut]], labels[order[:cut]])


def _dataset(train: Examples, test: Examples) -> Dataset:
    return Dataset(train, test, classes=int(max(train.labels.max(), test.labels.max())) + 1)
