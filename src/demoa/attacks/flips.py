"""Attacks that need no knowledge: a client turns around what it sends, or what it learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from demoa.attacks.attack import Attack


@dataclass(frozen=True)
class BitFlip(Attack):
    """The negative of what the client would have sent.

    Its momentum is kept as an honest client's would be.
    """

    colludes: ClassVar[bool] = False

    def spoil(self, vector: Any) -> Any:
        """Return the negative."""
        return -vector


@dataclass(frozen=True)
class LabelFlip(Attack):
    """An honest gradient of data whose label y has become classes - 1 - y."""

    flips_labels: ClassVar[bool] = True
    colludes: ClassVar[bool] = False


@dataclass(frozen=True)
class Inf(Attack):
    """Infinity in every entry: what a gate is for."""

    colludes: ClassVar[bool] = False

    def spoil(self, vector: Any) -> Any:
        """Return infinities."""
        return vector * 0 + float("inf")
