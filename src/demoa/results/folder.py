"""The folder of a run: its spec, one record per round, the state to go on from, and the final figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError, StoreError

Record = dict[str, Any]

FORMAT = 1
"""The version of what a run leaves behind; a run of another version is another run."""


class RunFolder:
    """A run on disk.

    spec.json           the whole spec, every default filled in
    records.jsonl       one line per round
    scores.json         what validation said where the run paused on the way, by round, if it did
    error.json          why the run failed, if it did
    state.safetensors   the server, as of the last checkpoint
    final.json          the final figures, once the run is through
    machines.json       on what it was played; more than one, if it went on elsewhere
    history.json        what is drawn of the run, if it was played elsewhere and its records were not kept
    """

    def __init__(self, path: Path) -> None:
        """Take a folder, which need not exist yet."""
        self.path = path

    @property
    def state(self) -> Path:
        """The server's saved state."""
        return self.path / "state.safetensors"

    @property
    def has_begun(self) -> bool:
        """Whether there is a run here."""
        return (self.path / "spec.json").exists()

    def start(self, identity: str, resolved: dict[str, Any]) -> None:
        """Begin a new run here; a folder that holds one is refused."""
        self.check_free()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / "records.jsonl").write_text("")
            if self.final() is None:
                (self.path / "history.json").unlink(missing_ok=True)
            self._write("spec.json", {"format": FORMAT, "id": identity, "spec": resolved})  # last: now it is a run
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; choose another folder") from error

    def check_free(self) -> None:
        """Raise ConfigError if the folder holds a run, or is none."""
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file; give a folder for the results")
        if self.has_begun:
            raise ConfigError(f"{self.path} already holds a run; go on with --resume, or choose another folder")

    def spec(self) -> tuple[str, dict[str, Any]]:
        """Return the identity and the spec of the run in this folder."""
        content = self._read("spec.json")
        if content is None:
            raise ConfigError(f"{self.path} holds no run: there is no spec.json in it")
        if content.get("format") != FORMAT:
            raise StoreError(f"{self.path} was written by another version of demoa; run it again in another folder")
        return content["id"], content["spec"]

    def append(self, record: Record) -> None:
        """Add the record of a round."""
        try:
            with (self.path / "records.jsonl").open("a") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; make room, then go on") from error

    def records(self) -> list[Record]:
        """Return the records so far; a last line that was cut short does not count."""
        return read_lines(self.path / "records.jsonl")

    def keep_records(self, rounds: int) -> None:
        """Drop the records after that many rounds: they will be made again, the same."""
        kept = [json.dumps(record) + "\n" for record in self.records()[:rounds]]
        if len(kept) < rounds:
            raise StoreError(f"{self.path} has {len(kept)} records of {rounds} rounds; start again in another folder")
        replace_text(self.path / "records.jsonl", "".join(kept))

    def finish(self, final: Record) -> None:
        """Write the final figures."""
        self._write("final.json", final)

    def final(self) -> Record | None:
        """Return the final figures, or None if the run is not through."""
        found: Record | None = self._read("final.json")
        return found

    def add_machine(self, name: str) -> None:
        """Write that the run is played on a machine from here on."""
        if self.machines()[-1:] != [name]:
            self._write("machines.json", [*self.machines(), name])

    def machines(self) -> list[str]:
        """Return on what the run was played so far; empty if that is not known."""
        found: list[str] = self._read("machines.json") or []
        return found

    def take(
        self,
        identity: str,
        resolved: dict[str, Any],
        *,
        scores: dict[str, Record],
        final: Record,
        history: Record,
        machines: list[str],
    ) -> None:
        """Put a run here that was played elsewhere; one that has no final figures is to be played from its start."""
        self.path.mkdir(parents=True, exist_ok=True)
        contents: dict[str, Record | list[str]] = {
            "scores": scores,
            "history": final and history,
            "final": final,
            "machines": machines,
        }
        for name, content in contents.items():
            if content:
                self._write(f"{name}.json", content)
        self.start(identity, resolved)  # last: now it is a run

    def history(self) -> Record | None:
        """Return what is drawn of a run whose records are not here; None if they are."""
        found: Record | None = self._read("history.json")
        return found

    def add_score(self, round: int, score: Record) -> None:
        """Write what validation said after a round."""
        self._write("scores.json", {**self.scores(), str(round): score})

    def scores(self) -> dict[str, Record]:
        """Return what validation said on the way, by round."""
        found: dict[str, Record] = self._read("scores.json") or {}
        return found

    def fail(self, reason: str, details: str) -> None:
        """Write why the run failed: one line, and all that is known."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._write("error.json", {"error": reason, "details": details})

    def error(self) -> str | None:
        """Return why the run failed, in one line; None if it did not."""
        found = self._read("error.json")
        return None if found is None else str(found["error"])

    def forgive(self) -> None:
        """Forget that the run failed: it is to be tried again."""
        (self.path / "error.json").unlink(missing_ok=True)

    def drop_state(self) -> None:
        """Delete the server's saved state, which no one needs once a run is through."""
        self.state.unlink(missing_ok=True)

    def _write(self, name: str, content: Record | list[str]) -> None:
        replace_text(self.path / name, json.dumps(content, indent=1) + "\n")

    def _read(self, name: str) -> Any:
        return read_json(self.path / name)


def replace_text(path: Path, text: str) -> None:
    """Write a file in one step: whoever reads it sees all of the old text or all of the new."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError as error:
        raise StoreError(f"cannot write to {path.parent}: {error.strerror}; make room, then go on") from error


def read_json(path: Path) -> Any:
    """Return what is in a JSON file; None if there is none."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


def read_lines(path: Path) -> list[Record]:
    """Return the lines of a file of JSON lines; a last line that was cut short does not count."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found
