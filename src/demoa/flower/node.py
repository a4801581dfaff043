"""A SuperNode that answers at once: `demoa-supernode`, with the arguments of `flower-supernode`.

Flower's own asks for messages every three seconds, and starts a Python for each of them, which imports torch anew: on a
small model a round is then mostly waiting. This one asks more often, and forks its app from a process that has torch
already. The protocol, the keys and the isolation of the app in a process of its own are Flower's.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from flwr.supernode.cli.flower_supernode import flower_supernode

POLL = 0.2
"""How often the SuperLink is asked for messages, in seconds."""


def main() -> None:
    """Run a SuperNode."""
    # What Flower 1.41 does not let one set: how long its loop sleeps, and what starts the app.
    loop: Any = importlib.import_module("flwr.supernode.start_client_internal")
    loop.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, POLL)))
    loop.subprocess = SimpleNamespace(Popen=_start)
    os.environ.setdefault("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", str(POLL / 4))
    flower_supernode()


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start `flower-superexec` with apps that are forked."""
    name, *options = command
    if name != "flower-superexec":
        raise RuntimeError(f"this version of Flower starts {name!r}; use its own flower-supernode")
    return subprocess.Popen([sys.executable, "-m", "demoa.flower.executor", *options])


if __name__ == "__main__":
    main()
