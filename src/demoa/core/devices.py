"""Where torch computes."""

from __future__ import annotations

import torch

from demoa.core.errors import ConfigError, first_line


def usable_device(name: str) -> torch.device:
    """Return the device of that name, after trying it.

    >>> usable_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = first_line(error)
        raise ConfigError(
            f"device {name!r} cannot be used here: {reason}; use cpu, or a device that torch has"
        ) from error
    return device
