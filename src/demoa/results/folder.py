"""The folder of a run: its spec, one record per round, the state to go on from, and the final figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError, StoreError

Record = dict[str, Any]


class RunFolder:
    """A run on disk.

    spec.json           the whole spec, every default filled in
    records.jsonl       one line per round
    state.safetensors   the server, as of the last checkpoint
    final.json          the final figures, once the run is through
    """

    def __init__(self, path: Path) -> None:
        """Take a folder, which need not exist yet."""
        self.path = path

    @property
    def state(self) -> Path:
        """The server's saved state."""
        return self.path / "state.safetensors"

    def start(self, identity: str, resolved: dict[str, Any]) -> None:
        """Begin a new run here; a folder that holds one is refused."""
        self.check_free()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._write("spec.json", {"id": identity, "spec": resolved})
            (self.path / "records.jsonl").write_text("")
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; choose another folder") from error

    def check_free(self) -> None:
        """Raise ConfigError if the folder holds a run."""
        if (self.path / "spec.json").exists():
            raise ConfigError(f"{self.path} already holds a run; go on with --resume, or choose another folder")

    def spec(self) -> tuple[str, dict[str, Any]]:
        """Return the identity and the spec of the run in this folder."""
        content = self._read("spec.json")
        if content is None:
            raise ConfigError(f"{self.path} holds no run: there is no spec.json in it")
        return content["id"], content["spec"]

    def append(self, record: Record) -> None:
        """Add the record of a round."""
        try:
            with (self.path / "records.jsonl").open("a") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; make room, then --resume") from error

    def records(self) -> list[Record]:
        """Return the records so far; a last line that was cut short does not count."""
        found = []
        for line in (self.path / "records.jsonl").read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return found

    def keep_records(self, rounds: int) -> None:
        """Drop the records after that many rounds: they will be made again, the same."""
        kept = [json.dumps(record) + "\n" for record in self.records()[:rounds]]
        if len(kept) < rounds:
            raise StoreError(f"{self.path} has {len(kept)} records of {rounds} rounds; start again in another folder")
        self._replace("records.jsonl", "".join(kept))

    def finish(self, final: Record) -> None:
        """Write the final figures."""
        self._write("final.json", final)

    def final(self) -> Record | None:
        """Return the final figures, or None if the run is not through."""
        found: Record | None = self._read("final.json")
        return found

    def _write(self, name: str, content: Record) -> None:
        self._replace(name, json.dumps(content, indent=1) + "\n")

    def _replace(self, name: str, text: str) -> None:
        part = self.path / f".{name}.part"
        try:
            part.write_text(text)
            os.replace(part, self.path / name)
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; make room, then --resume") from error

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path / name} cannot be read: {error}") from error
