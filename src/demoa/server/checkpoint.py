"""Saved states: named arrays and a JSON header in one safetensors file, written whole or not at all."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from demoa.core.errors import StoreError

FORMAT = "demoa.server"
VERSION = 1


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a state to path so that a crash at any moment leaves the old file or the new one.

    One writer per path: two that write to the same path at once are not kept apart.

    Raises:
        StoreError: The file cannot be written; what was there before still is.
    """
    target = _path(path)
    if target.exists() and not target.is_file():
        raise StoreError(f"cannot write {target}: it is not a file; choose another name")
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    sums = {name: _checksum(array) for name, array in contiguous.items()}
    envelope = {"format": FORMAT, "version": VERSION, "checksums": sums, "state": dict(header)}
    text = json.dumps(envelope, allow_nan=False)
    # Not a name of its own for each try: what a killed process leaves behind is overwritten, not collected.
    part = target.with_name(f".{target.name}.part")
    try:
        # One entry, as several would come out in an order of their own: equal states give equal files.
        save_file(contiguous, part, metadata={"demoa": f"{zlib.crc32(text.encode())} {text}"})
        _sync(part)
        os.replace(part, target)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"cannot write {target}: {error}; the state saved before is untouched") from error
    try:
        _sync(target.parent)
    except OSError as error:
        raise StoreError(f"{target} is written, but may not outlast a power failure: {error}") from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a state written by `write`.

    Raises:
        StoreError: There is no such file, or it is truncated, damaged, foreign or of a newer version.
    """
    target = _path(path)
    try:
        if not target.is_file():
            raise StoreError(f"no saved state at {target}")
        with safe_open(target, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = file.get_tensors()
        checksum, _, text = metadata.get("demoa", "0 null").partition(" ")
        envelope = json.loads(text)
    except StoreError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(f"{target} is truncated, damaged or not a state saved by demoa: {error}") from error
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise StoreError(f"{target} is not a state of a demoa server")
    if envelope.get("version") != VERSION:
        raise StoreError(
            f"{target} has format version {envelope.get('version')}, this demoa reads {VERSION}; "
            "use the version of demoa that wrote it"
        )
    if checksum != str(zlib.crc32(text.encode())):
        raise StoreError(f"{target} is damaged: wrong checksum of its header; use an older state")
    if envelope["checksums"] != {name: _checksum(array) for name, array in arrays.items()}:
        raise StoreError(f"{target} is damaged: wrong checksum of its arrays; use an older state")
    return envelope["state"], arrays


def _path(path: str | os.PathLike[str]) -> Path:
    try:
        target = Path(path)
        if not target.name or "\0" in str(target):
            raise ValueError("it has no file name")
        target.exists()  # a name that is too long shows here
    except (TypeError, ValueError, OSError) as error:
        raise StoreError(f"{path!r} cannot be the path of a saved state: {error}") from error
    return target


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
