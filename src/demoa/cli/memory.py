"""What the rows of a server take, as a table."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from demoa.aggregation.stores.fitting import footprints, free_disk, free_memory
from demoa.core.checks import whole_number
from demoa.core.errors import unknown_name


def print_footprints(clients: int, width: int, store: str | None, console: Console) -> None:
    """Print a line per kind of store, and what there is on this machine."""
    whole_number("--n", clients, least=1)
    whole_number("--d", width, least=1)
    found = list(footprints(clients, width))
    if store is not None:
        found = [one for one in found if one.name.split(",")[0] == store]
        if not found:
            raise unknown_name("store", store, {one.name.split(",")[0] for one in footprints(1, 1)})
    memory, disk = free_memory(), free_disk(Path.cwd())
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("store", "in memory", "on disk", "fits here"):
        table.add_column(title, justify="left" if title == "store" else "right")
    for one in found:
        fits = one.rows.disk <= disk and (memory is None or one.rows.memory <= memory)
        table.add_row(one.name, size(one.rows.memory), size(one.rows.disk), "yes" if fits else "no")
    console.print(f"The rows of {clients:,} clients with {width:,} float32 parameters each:", highlight=False)
    console.print(table)
    here = "" if memory is None else f"{size(memory)} of memory and "
    console.print(f"Free on this machine: {here}{size(disk)} of disk, in this folder.", highlight=False)
    console.print(
        f"Rules that look at the table of inner products need {size(found[0].table)} of memory for it as well.",
        highlight=False,
    )


def size(number: int) -> str:
    """Return a number of bytes as people read it.

    >>> size(0), size(1_500_000), size(48_000_000_000)
    ('-', '1.5 MB', '48.0 GB')
    """
    if number == 0:
        return "-"
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} B"
