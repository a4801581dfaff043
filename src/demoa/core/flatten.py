"""Models as vectors: all parameters of a module in one (d,) tensor, and their gradients in another."""

from __future__ import annotations

import torch
from torch import nn


class FlatModel:
    """A module whose parameters are views of one vector, and whose gradients gather in another.

    Setting the parameters is one copy, and a gradient needs no gathering: backward() writes it in place.

    Attributes:
        module: The module.
        parameters: All parameters, (d,).
        gradient: All gradients, (d,).
    """

    def __init__(self, module: nn.Module) -> None:
        """Move the module's parameters into one vector, in the order of `module.parameters()`.

        Filters of convolutions lie there as (out, height, width, in), the order that is fastest on a CPU.
        """
        self.module = module
        owned = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.parameters = torch.cat([_flat(parameter.detach()) for parameter in owned])
        self.gradient = torch.zeros_like(self.parameters)
        start = 0
        for parameter in owned:
            stop = start + parameter.numel()
            parameter.data = _shaped(self.parameters[start:stop], parameter.shape)
            parameter.grad = _shaped(self.gradient[start:stop], parameter.shape)
            start = stop

    def __len__(self) -> int:
        return len(self.parameters)

    def set_parameters(self, vector: torch.Tensor) -> None:
        """Copy a vector, (d,), into the module."""
        self.parameters.copy_(vector)

    def differentiate(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the loss, (d,): a view that the next call overwrites."""
        self.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        return self.gradient


def _flat(parameter: torch.Tensor) -> torch.Tensor:
    """Return a parameter's entries, (d,), in the order of the vector."""
    return (parameter.permute(0, 2, 3, 1) if parameter.dim() == 4 else parameter).reshape(-1)


def _shaped(entries: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return a part of the vector as a parameter of that shape: a view."""
    if len(shape) != 4:
        return entries.view(shape)
    return entries.view(shape[0], shape[2], shape[3], shape[1]).permute(0, 3, 1, 2)
