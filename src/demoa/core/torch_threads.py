"""How many threads torch and the kernels use."""

from __future__ import annotations

import torch

from demoa.core.threads import set_threads


def use_threads(count: int) -> None:
    """Let torch and the kernels use that many threads; torch adds up in another order with another number."""
    set_threads(count)
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)
