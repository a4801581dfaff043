"""The folder of a deployment: the server's state, what the strategy knows beside it, and what happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from demoa.core.errors import StoreError
from demoa.server import checkpoint
from demoa.server.round import ClientId
from demoa.server.server import Server
from demoa.server.state import saved_roster


class StrategyFolder:
    """A deployment on disk.

    state.safetensors         the server: parameters, rows, roster, round
    notes-ROUND.safetensors   what the strategy knows at that round beside it; written first
    audit.jsonl               a line per round; one that was played again after a crash has two, and the last counts
    roster.jsonl              a line for each time that clients came or left
    """

    def __init__(self, path: str | Path | None) -> None:
        """Take the folder; None saves nothing."""
        self.path = None if path is None else Path(path)
        if self.path is not None:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"cannot write to {self.path}: {error.strerror}; choose another folder") from error

    def roster(self) -> list[ClientId] | None:
        """Return the clients of an earlier run; None if there was none."""
        if self.path is None or not (self.path / "state.safetensors").exists():
            return None
        return saved_roster(self.path / "state.safetensors")

    def load(self, server: Server) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Bring a server to where an earlier run saved it, and return the notes of that round, and their arrays."""
        assert self.path is not None
        server.load(self.path / "state.safetensors")
        return checkpoint.read(self._notes(server.round))

    def save(self, server: Server, notes: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Save a server and the notes of its round; a crash in between leaves the state before, and its notes."""
        if self.path is None:
            return
        target = self._notes(server.round)
        checkpoint.write(target, notes, arrays)
        server.save(self.path / "state.safetensors")
        for other in self.path.glob("notes-*.safetensors"):
            if other != target:
                other.unlink(missing_ok=True)

    def _notes(self, number: int) -> Path:
        assert self.path is not None
        return self.path / f"notes-{number}.safetensors"

    def note(self, event: dict[str, Any]) -> None:
        """Write down that clients came or left."""
        if self.path is not None:
            with (self.path / "roster.jsonl").open("a") as file:
                file.write(json.dumps(event) + "\n")
