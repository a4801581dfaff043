"""What rows take, before anything is started, and whether that is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from demoa.aggregation.stores.kinds import Bfloat16, Bytes, Dense, Int8, Memmap, StoreKind, TopK
from demoa.core.errors import ConfigError

MEMINFO = Path("/proc/meminfo")


class Footprint(NamedTuple):
    """What a server with a kind of store takes: its rows, and the table of their inner products.

    The table is taken from the system only by rules that look at it: mean, median and trimmed mean never do, and
    centered clipping over many clients next to never.
    """

    name: str
    rows: Bytes
    table: int


def footprints(clients: int, width: int, itemsize: int = 4) -> Iterator[Footprint]:
    """Yield what each kind of store would take for so many clients and parameters."""
    for name, kind in candidates("FOLDER").items():
        yield Footprint(name, kind.size(clients, width, itemsize), 8 * clients * clients)


def candidates(folder: str) -> dict[str, StoreKind]:
    """Return kinds of stores by what they are called in a list, the most exact first."""
    return {
        "dense": Dense(),
        "bfloat16": Bfloat16(),
        "int8": Int8(),
        "top_k": TopK(),
        "memmap": Memmap(folder),
        "bfloat16, mapped": Bfloat16(folder),
        "int8, mapped": Int8(folder),
        "top_k, mapped": TopK(folder),
    }


def free_memory() -> int | None:
    """Return how many bytes of main memory are to be had; None where that is not known."""
    try:
        facts = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        return 1024 * int(facts["MemAvailable"].split()[0])
    except (OSError, ValueError, KeyError):  # not Linux
        return None


def free_disk(folder: str | Path) -> int:
    """Return how many bytes are free on the disk of a folder, which need not exist yet."""
    place = Path(folder).resolve()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def check_table_fits(rows: int) -> None:
    """Raise ConfigError if there is no room for the inner products of so many rows."""
    needed, memory = 8 * rows * rows, free_memory()
    if memory is not None and needed > memory:
        raise ConfigError(
            f"the inner products of {rows:,} rows take {needed / 1e9:.1f} GB of memory, and {memory / 1e9:.1f} GB are "
            "free; mean, centered_clip, median, trimmed_mean and meamed need none, unless the algorithm is marina_pp"
        )


def check_fits(kind: StoreKind, clients: int, width: int, itemsize: int) -> None:
    """Raise ConfigError if the rows cannot be kept here, and name a kind of store that could."""
    needed, memory = kind.size(clients, width, itemsize), free_memory()
    folder = getattr(kind, "folder", None)
    if memory is not None and needed.memory > memory:
        fitting = [name for name, rows, _ in footprints(clients, width, itemsize) if 0 < rows.memory <= memory]
        better = f"store {fitting[0]!r} would fit" if fitting else "give a folder: store 'memmap' keeps rows on disk"
        raise ConfigError(
            f"the rows of {clients:,} clients take {needed.memory / 1e9:.1f} GB of memory, and {memory / 1e9:.1f} GB "
            f"are free; {better} (demoa memory --n {clients} --d {width})"
        )
    if folder is not None and needed.disk > (free := free_disk(folder)):
        raise ConfigError(
            f"the rows of {clients:,} clients take {needed.disk / 1e9:.1f} GB on the disk of {folder}, and "
            f"{free / 1e9:.1f} GB are free; make room, or see what takes less: demoa memory --n {clients} --d {width}"
        )
