"""A study in one file, small enough to be kept beside what is written about it: JSON, a line per run.

The first line says what the study is. A run has its labels, its final figures, and, where its cell is judged by it,
what is drawn of it. The records of single rounds are left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError, StoreError
from demoa.results.folder import Record, replace_text
from demoa.results.run import History, Results, RunResult
from demoa.results.study import StudyFolder

SUFFIX = ".jsonl"
FORMAT = "demoa study 1"
FACTS = ("id", "cell", "setting", "seed", "chosen", "status", "error", "seconds")
ABOUT = ("title", "note", "scaled", "axes", "seeds", "tuned", "method", "layout")


@dataclass(frozen=True)
class KeptSource:
    """What an archive holds of a run."""

    line: dict[str, Any]

    def spec(self) -> dict[str, Any]:
        """Return the whole spec; empty if the run never began."""
        return dict(self.line["spec"])

    def final(self) -> Record:
        """Return the final figures; empty if there are none."""
        return dict(self.line["final"])

    def scores(self) -> dict[str, Record]:
        """Return what validation said on the way, by round."""
        return dict(self.line["scores"])

    def records(self) -> list[Record]:
        """Refuse: the records of single rounds are not there."""
        raise ConfigError("the file of a study holds no records of single rounds; use the study's folder")

    def history(self) -> History:
        """Return what is drawn of the run; nothing of one that was not chosen."""
        return History.of(self.line)


def write(results: Results, target: Path) -> int:
    """Write a study to a file, and return how many runs it holds."""
    about = {"format": FORMAT, **{name: getattr(results, name) for name in ABOUT}}
    try:
        replace_text(target, "".join(json.dumps(line) + "\n" for line in [about, *map(_line, results.runs)]))
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error}") from error
    return len(results.runs)


def _line(run: RunResult) -> dict[str, Any]:
    drawn = History([], {}) if run.chosen is False else run.history
    return {
        **{name: getattr(run, name) for name in FACTS},
        "spec": run.spec,
        "final": run.final,
        "scores": run.source.scores(),
        **drawn.plain(),
    }


def read(path: Path) -> Results:
    """Return the study in a file."""
    try:
        about, *lines = (json.loads(line) for line in path.read_text().splitlines())
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
        runs = tuple(RunResult(**{name: line[name] for name in FACTS}, source=KeptSource(line)) for line in lines)
        given = {name: about[name] for name in ABOUT}
        for name in ("scaled", "seeds", "tuned"):
            given[name] = tuple(given[name])
        return Results(**given, runs=runs)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} does not hold a study; make it with demoa export FOLDER {path.name}") from error


def restore(path: Path, folder: StudyFolder, wanted: Collection[str]) -> int:
    """Put runs that a file holds into the folder of a study, which is open, and return how many were taken.

    A run that is not wanted, that failed, or that has begun in the folder is left out. One that was on its way when
    the file was written keeps what validation said of it, and is played from its start where it has to go on.
    """
    taken = 0
    for run in read(path).runs:
        target = folder.run(run.id)
        if run.id in wanted and run.spec and run.status != "failed" and not target.has_begun:
            scores, final = run.source.scores(), run.final
            target.start(run.id, run.spec)
            for number, score in scores.items():
                target.add_score(int(number), score)
            if final:
                target.keep_history(run.history.plain())
                target.finish(final)
            if run.seconds is not None:
                rounds = int(run.spec["run"]["rounds"]) if final else max(map(int, scores), default=0)
                folder.log({"event": "ended", "run": run.id, "rounds": rounds, "seconds": run.seconds})
            taken += 1
    return taken
