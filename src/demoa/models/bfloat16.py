"""Mixed precision: parameters in float32, most of the arithmetic in bfloat16."""

from __future__ import annotations

import torch
from torch import nn


class InBFloat16(nn.Module):
    """A model that multiplies in bfloat16 and keeps parameters, gradients and what it returns in float32.

    Faster where the processor has instructions for it, slower where it has not. Numbers have three digits in place of
    seven, and torch leaves sums that need more, such as norms and losses, in float32.
    """

    def __init__(self, module: nn.Module) -> None:
        """Take the model."""
        super().__init__()
        self.module = module

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return what the model does, in float32."""
        with torch.autocast(images.device.type, torch.bfloat16):
            output: torch.Tensor = self.module(images)
        return output.float()
