"""The folder of a study: what it is, its runs, which settings were chosen, and what happened when."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from demoa.core.errors import ConfigError, StoreError
from demoa.results.folder import FORMAT, Record, RunFolder, read_json, replace_text


class StudyFolder:
    """A study on disk.

    study.json      what it is: title, axes, cells, and the id of every run
    chosen.json     which setting was chosen in which cell, as far as that is settled
    journal.jsonl   what happened when: a line per run that began or ended
    runs/ID/        the folder of each run
    """

    def __init__(self, path: Path) -> None:
        """Take a folder, which need not exist yet."""
        self.path = path
        self._lock = FileLock(path / ".lock")

    def run(self, identity: str) -> RunFolder:
        """Return the folder of one of its runs."""
        return RunFolder(self.path / "runs" / identity)

    def open(self, content: Record) -> None:
        """Begin the study here, or go on with it; hold the folder until `close`.

        Raises:
            ConfigError: The folder holds something else, or another process is at work in it.
        """
        try:
            self._check(content)  # before anything is written, and again once no one else writes
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=5)
            self._check(content)
            self._write("study.json", {"format": FORMAT, **content})
        except Timeout:
            raise ConfigError(f"another process is at work in {self.path}; wait for it, or stop it") from None
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; choose another folder") from error

    def _check(self, content: Record) -> None:
        """Raise ConfigError if the folder holds something other than this study."""
        if (self.path / "study.json").exists():
            before = self.content()
            if before["id"] != content["id"]:
                title = before["title"]
                raise ConfigError(f"{self.path} holds another study ({title!r}); choose another folder with --out")
        elif self.path.exists() and any(not entry.name.startswith(".") for entry in self.path.iterdir()):
            raise ConfigError(f"{self.path} is not empty and holds no study; choose another folder with --out")

    def close(self) -> None:
        """Let the folder go."""
        self._lock.release()

    def content(self) -> Record:
        """Return what the study is."""
        found = read_json(self.path / "study.json")
        if found is None:
            raise ConfigError(f"{self.path} holds no study: there is no study.json in it")
        if found.get("format") != FORMAT:
            raise StoreError(f"{self.path} was written by another version of demoa; use a new folder")
        content: Record = found
        return content

    def choose(self, chosen: dict[int, int]) -> None:
        """Write which setting was chosen in which cell, by their places."""
        self._write("chosen.json", {str(cell): setting for cell, setting in sorted(chosen.items())})

    def chosen(self) -> dict[int, int]:
        """Return which setting was chosen in which cell, by their places."""
        return {int(cell): setting for cell, setting in (read_json(self.path / "chosen.json") or {}).items()}

    def log(self, event: Record) -> None:
        """Add a line to the journal."""
        try:
            with (self.path / "journal.jsonl").open("a") as file:
                file.write("\n" + json.dumps(event))  # the break comes first: the line before may have been cut short
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}; make room, then go on") from error

    def journal(self) -> list[Record]:
        """Return what happened so far; lines that were cut short do not count."""
        path = self.path / "journal.jsonl"
        found = []
        for line in path.read_text().splitlines() if path.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    def _write(self, name: str, content: Any) -> None:
        replace_text(self.path / name, json.dumps(content, indent=1) + "\n")
