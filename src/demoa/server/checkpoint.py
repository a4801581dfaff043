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

    Raises:
        StoreError: The file cannot be written; what was there before still is.
    """
    target = Path(path)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    sums = {name: _checksum(array) for name, array in contiguous.items()}
    text = json.dumps({"format": FORMAT, "version": VERSION, "checksums": sums, "state": dict(header)})
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        save_file(contiguous, part, metadata={"demoa": text})
        _sync(part)
        os.replace(part, target)
        _sync(target.parent)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"cannot write {target}: {error}; the state saved before is untouched") from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a state written by `write`.

    Raises:
        StoreError: There is no such file, or it is truncated, damaged, foreign or of a newer version.
    """
    target = Path(path)
    if not target.is_file():
        raise StoreError(f"no saved state at {target}")
    try:
        with safe_open(target, framework="numpy") as file:
            envelope = json.loads((file.metadata() or {}).get("demoa", "null"))
            arrays = file.get_tensors()
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise StoreError(f"{target} is truncated, damaged or not a state saved by demoa: {error}") from error
    _check_envelope(target, envelope)
    damaged = [n for n, total in envelope["checksums"].items() if n not in arrays or _checksum(arrays[n]) != total]
    if damaged:
        raise StoreError(f"{target} is damaged: wrong checksum of {', '.join(damaged)}; use an older state")
    return envelope["state"], arrays


def _check_envelope(target: Path, envelope: Any) -> None:
    if not isinstance(envelope, dict) or envelope.get("format") != FORMAT:
        raise StoreError(f"{target} is not a state of a demoa server")
    if envelope.get("version") != VERSION:
        raise StoreError(
            f"{target} has format version {envelope.get('version')}, this demoa reads {VERSION}; "
            "use the version of demoa that wrote it"
        )


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(memoryview(array.reshape(-1)).cast("B")) if array.size else 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
