"""Momentum on the client's side, for servers made with momentum="client"."""

from __future__ import annotations

from typing import Any

from demoa.aggregation.kernels.products import blended
from demoa.core.arrays import check_floats, dtype_name, like, to_numpy
from demoa.core.errors import ConfigError


def client_momentum(momentum: Any, gradient: Any, *, keep: float, gain: float) -> Any:
    """Return keep * momentum + gain * gradient, (d,), as the server would compute it, to the last bit.

    A client starts from zero. It must go on from the momentum that the server last accepted: one that was
    refused or lost does not count.

    Args:
        momentum: What the server last accepted from this client.
        gradient: The new gradient.
        keep: `Round.keep` of this client: all the decay since then.
        gain: `Round.gain`.

    >>> import numpy as np
    >>> client_momentum(np.array([1.0]), np.array([2.0]), keep=0.5, gain=0.9).tolist()
    [2.3]
    """
    check_floats(momentum, 1, "momentum")
    check_floats(gradient, 1, "gradient")
    if dtype_name(momentum) != dtype_name(gradient) or tuple(momentum.shape) != tuple(gradient.shape):
        raise ConfigError(
            f"momentum and gradient must be alike; got {dtype_name(momentum)} of {tuple(momentum.shape)} "
            f"and {dtype_name(gradient)} of {tuple(gradient.shape)}"
        )
    return like(momentum, blended(to_numpy(momentum), float(keep), float(gain), to_numpy(gradient)))
