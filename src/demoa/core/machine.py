"""On what a computation is made."""

from __future__ import annotations

import torch


def machine(device: str) -> str:
    """Return what the last digits of a computation hang on: the release of torch, and the kind of processor.

    >>> machine("cpu") == f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
    True
    """
    kind = torch.device(device).type
    if kind == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = torch.backends.cpu.get_cpu_capability() if kind == "cpu" else kind
    return f"torch {torch.__version__}, {name}"
