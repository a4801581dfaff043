"""The folder where fetched data sets are kept."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from demoa.core.errors import ConfigError, StoreError

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
Arrays = dict[str, NDArray[np.uint8]]
"""The four arrays of a data set: images (N, channels, size, size) and labels (N,), uint8."""


def folder() -> Path:
    """Return where data sets are kept: $DEMOA_DATA, or the user's cache folder."""
    return Path(os.environ.get("DEMOA_DATA") or user_cache_path("demoa") / "data")


def path_of(name: str) -> Path:
    """Return the file of a data set, whether it is there or not."""
    return folder() / f"{name}.safetensors"


def content(arrays: Arrays) -> str:
    """Return the fingerprint of a data set: SHA-256 over its four arrays, wherever they came from."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def save(name: str, arrays: Arrays, expected: str) -> None:
    """Keep a data set, after checking what is in it; never leaves half a file."""
    if content(arrays) != expected:
        raise StoreError(f"the fetched {name} is not what it should be (wrong checksum); fetch it again")
    target = path_of(name)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        save_file({key: np.ascontiguousarray(array) for key, array in arrays.items()}, part)
        os.replace(part, target)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"cannot write {target}: {error}; set DEMOA_DATA to a folder with room") from error


def load(name: str) -> Arrays:
    """Return a data set that was fetched before."""
    target = path_of(name)
    if not target.is_file():
        raise ConfigError(
            f"{name} is not here: run `demoa data fetch {name}`, or copy {target.name} from a machine that has it "
            f"to {target.parent}, or set DEMOA_DATA to the folder that holds it"
        )
    try:
        return load_file(target)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"{target} is damaged: {error}; delete it and run `demoa data fetch {name}`") from error
