"""Saved states of a server whose rows are cut over several workers: a folder with a part from each of them.

    PATH/latest.json                 which round is complete, and of how many parts
    PATH/ROUND/RANK.safetensors      one worker's columns

Another number of workers can take it up: each reads its columns out of whichever parts hold them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.sharded import Shard
from demoa.core.errors import StoreError
from demoa.server import checkpoint

CUT = ("parameters", "running.total", "store.rows")
"""Arrays of which each worker has its columns; the others are the same everywhere."""


def write(path: str | os.PathLike[str], shard: Shard, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write this worker's part; the state is complete when all workers have written theirs."""
    folder, number = Path(path), int(header["round"])
    try:
        (folder / str(number)).mkdir(parents=True, exist_ok=True)
        checkpoint.write(folder / str(number) / f"{shard.rank}.safetensors", header, arrays)
        shard.wait()
        if shard.rank == 0:
            part = folder / ".latest.json.part"
            part.write_text(json.dumps({"round": number, "parts": shard.count, "width": shard.width}))
            os.replace(part, folder / "latest.json")
        shard.wait()
        if shard.rank == 0:
            for other in folder.iterdir():
                if other.is_dir() and other.name != str(number):
                    shutil.rmtree(other, ignore_errors=True)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error}; the state saved before is untouched") from error


def read(path: str | os.PathLike[str], shard: Shard) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header, and the arrays with this worker's columns, of the last complete state."""
    folder = Path(path)
    try:
        latest = json.loads((folder / "latest.json").read_text())
        before = Shard(int(latest["width"]), 0, int(latest["parts"]))
        round_folder = folder / str(int(latest["round"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"no saved state of several workers at {folder}: {error}") from error
    if before.width != shard.width:
        raise StoreError(f"{folder} holds vectors of {before.width} entries, these have {shard.width}")
    start, stop = shard.bounds()
    pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in CUT}
    header: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for rank in range(before.count):
        left, right = before.bounds(rank)
        if max(left, start) < min(right, stop) or (rank == 0 and start == stop):
            header, arrays = checkpoint.read(round_folder / f"{rank}.safetensors")
            if before.count != shard.count and "store.rows" not in arrays:
                raise StoreError(
                    f"{folder} was saved by {before.count} workers, and rows that are not plain numbers in memory "
                    f"cannot be cut anew for {shard.count}; start {before.count} workers"
                )
            for name in CUT:
                if name in arrays:
                    pieces[name].append(arrays[name][..., max(left, start) - left : min(right, stop) - left])
    whole = {name: np.ascontiguousarray(np.concatenate(parts, axis=-1)) for name, parts in pieces.items() if parts}
    return header, {**arrays, **whole}
