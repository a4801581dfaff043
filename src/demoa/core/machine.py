"""On what a computation is made."""

from __future__ import annotations

import torch


def machine(device: str, precision: str | None = None) -> str:
    """Return what the last digits of a computation hang on: the release of torch, and the kind of processor.

    In bfloat16, also which instructions for it there are, as far as this release of torch can tell.

    >>> machine("cpu") == f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
    True
    """
    kind = torch.device(device).type
    if kind == "cuda":
        return f"torch {torch.__version__}, {torch.cuda.get_device_name(device)}"
    if kind != "cpu":
        return f"torch {torch.__version__}, {kind}"
    names = [torch.backends.cpu.get_cpu_capability()]
    if precision == "bfloat16":
        present: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()  # older releases do not have it
        names += [name for name in ("amx_bf16", "avx512_bf16") if present.get(name)]
    return f"torch {torch.__version__}, {' '.join(names)}"
