"""A loan of torch's global generator, which constructors and dropout layers of torch know no other way around."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from demoa.core.seeding import generator


@contextmanager
def seeded_torch(seed: int, *path: str | int) -> Iterator[None]:
    """Let torch draw from the stream of (seed, path) inside the block, and put its own state back after it.

    >>> with seeded_torch(0, "dropout", 1):
    ...     first = torch.rand(1)
    >>> with seeded_torch(0, "dropout", 1):
    ...     bool(torch.rand(1) == first)
    True
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(generator(seed, *path).integers(2**63)))
        yield
