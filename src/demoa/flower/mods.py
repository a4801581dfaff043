"""Attacks for red-team tests: mods that are put around a ClientApp, and spoil what it sends or how it behaves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType
from flwr.clientapp.typing import ClientAppCallable, Mod
from numpy.typing import NDArray

from demoa.core.errors import unknown_name

Spoil = Callable[[NDArray[np.floating]], NDArray[np.floating]]


def attack_mod(name: str, *, strength: float = 10.0, seconds: float = 30.0) -> Mod:
    """Return the mod of an attack by its name: one of `ATTACK_MODS`, or "none".

    Args:
        name: Which.
        strength: What `scaled` multiplies by.
        seconds: How long `sleep` sleeps.
    """
    if name == "none":
        return lambda message, context, app: app(message, context)
    if name not in ATTACK_MODS:
        raise unknown_name("attack", name, [*ATTACK_MODS, "none"])
    behave = ATTACK_MODS[name](strength, seconds)

    def mod(message: Message, context: Context, app: ClientAppCallable) -> Message:
        return (
            behave(message, context, app)
            if message.metadata.message_type == MessageType.TRAIN
            else app(message, context)
        )

    return mod


def _spoiling(spoil: Spoil) -> Mod:
    """Return a mod that changes every array of a reply."""

    def mod(message: Message, context: Context, app: ClientAppCallable) -> Message:
        reply = app(message, context)
        arrays = reply.content.array_records["arrays"]
        reply.content["arrays"] = ArrayRecord({name: Array(spoil(array.numpy())) for name, array in arrays.items()})
        return reply

    return mod


def _renaming(message: Message, context: Context, app: ClientAppCallable) -> Message:
    reply = app(message, context)
    arrays = reply.content.array_records["arrays"]
    reply.content["arrays"] = ArrayRecord({f"{name}.not": array for name, array in arrays.items()})
    return reply


def _raising(message: Message, context: Context, app: ClientAppCallable) -> Message:
    raise RuntimeError("this client raises, as it was told to")


def _sleeping(seconds: float) -> Mod:
    def mod(message: Message, context: Context, app: ClientAppCallable) -> Message:
        time.sleep(seconds)
        return app(message, context)

    return mod


def _exiting(message: Message, context: Context, app: ClientAppCallable) -> Message:
    os._exit(1)


ATTACK_MODS: dict[str, Callable[[float, float], Mod]] = {
    "bit_flip": lambda strength, seconds: _spoiling(lambda vector: -vector),
    "scaled": lambda strength, seconds: _spoiling(lambda vector: np.asarray(strength * vector, vector.dtype)),
    "nan": lambda strength, seconds: _spoiling(lambda vector: np.full_like(vector, np.nan)),
    "wrong_shape": lambda strength, seconds: _spoiling(lambda vector: np.zeros((*vector.shape, 2), vector.dtype)),
    "wrong_names": lambda strength, seconds: _renaming,
    "raise": lambda strength, seconds: _raising,
    "sleep": lambda strength, seconds: _sleeping(seconds),
    "exit": lambda strength, seconds: _exiting,
}
"""Every attack by its name. Labels are flipped in a client's own data, not here."""
