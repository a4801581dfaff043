"""The folder of a deployment: the server's state, what the strategy knows beside it, and what happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demoa.core.errors import StoreError
from demoa.server.round import ClientId
from demoa.server.server import Server
from demoa.server.state import saved_roster


class StrategyFolder:
    """A deployment on disk.

    state.safetensors   the server: parameters, rows, roster, round
    notes-ROUND.json    what the strategy knows at that round beside it; written first
    audit.jsonl         a line per round
    roster.jsonl        a line for each time that clients came or left
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

    def load(self, server: Server) -> dict[str, Any]:
        """Bring a server to where an earlier run saved it, and return the notes of that round."""
        assert self.path is not None
        server.load(self.path / "state.safetensors")
        try:
            notes: dict[str, Any] = json.loads((self.path / f"notes-{server.round}.json").read_text())
        except (OSError, ValueError) as error:
            raise StoreError(f"the notes of round {server.round} cannot be read: {error}") from error
        return {name: _restored(server, counts) for name, counts in notes.items()}

    def save(self, server: Server, notes: dict[str, dict[ClientId, int]]) -> None:
        """Save a server and the notes of its round; a crash in between leaves the state before, and its notes."""
        if self.path is None:
            return
        text = json.dumps(
            {name: {str(client): count for client, count in each.items()} for name, each in notes.items()}
        )
        target = self.path / f"notes-{server.round}.json"
        try:
            target.write_text(text)
            server.save(self.path / "state.safetensors")
            for other in self.path.glob("notes-*.json"):
                if other != target:
                    other.unlink()
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error}; make room, then start a new run") from error

    def note(self, event: dict[str, Any]) -> None:
        """Write down that clients came or left."""
        if self.path is not None:
            with (self.path / "roster.jsonl").open("a") as file:
                file.write(json.dumps(event) + "\n")


def _restored(server: Server, counts: dict[str, int]) -> dict[ClientId, int]:
    """Return counts by the clients' own names, which JSON holds as text."""
    names = {str(name): name for name in server.clients}
    return {names.get(name, name): count for name, count in counts.items()}
