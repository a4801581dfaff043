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
        """Move the module's parameters into one vector, in the order of `module.parameters()`."""
        self.module = module
        owned = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.parameters = torch.cat([parameter.detach().reshape(-1) for parameter in owned])
        self.gradient = torch.zeros_like(self.parameters)
        start = 0
        for parameter in owned:
            stop = start + parameter.numel()
            parameter.data = self.parameters[start:stop].view(parameter.shape)
            parameter.grad = self.gradient[start:stop].view(parameter.shape)
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
