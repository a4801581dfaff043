"""A study in one file, small enough to be kept beside what is written about it: JSON, a line per run.

The first line says what the study is, and how many runs there are. A run has its labels, its final figures and what is
drawn of it; of runs that halving has dropped, only what validation said. The records of single rounds are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError, StoreError
from demoa.results.folder import Record, replace_text
from demoa.results.run import History, Results, RunResult
from demoa.results.study import StudyFolder

SUFFIX = ".jsonl"
FORMAT = "demoa study 1"
NOTHING = type(None)
ABOUT = {
    "title": str,
    "note": str,
    "scaled": list,
    "axes": dict,
    "seeds": list,
    "tuned": list,
    "method": str,
    "layout": dict,
}
"""What the first line says, and of which kind it is."""
FACTS = {
    "id": str,
    "cell": dict,
    "setting": dict,
    "seed": int,
    "chosen": (bool, NOTHING),
    "status": str,
    "error": (str, NOTHING),
    "seconds": (int, float, NOTHING),
}
"""What a line says of a run."""
HELD = {"spec": dict, "final": dict, "scores": dict, "majority": list, "points": dict}
"""What a line holds of it."""
DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
"""What reading a file of another kind may lead to."""


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

    def machines(self) -> list[str]:
        """Return on what the run was played; empty if that is not known."""
        return list(self.line.get("machines", ()))

    def records(self) -> list[Record]:
        """Refuse: the records of single rounds are not there."""
        raise ConfigError("the file of a study holds no records of single rounds; use the study's folder")

    def history(self) -> History:
        """Return what is drawn of the run; nothing of one that was not chosen."""
        return History.of(self.line)


def write(results: Results, target: Path) -> int:
    """Write a study to a file, and return how many runs it holds."""
    about = {"format": FORMAT, "runs": len(results.runs), **{name: getattr(results, name) for name in ABOUT}}
    lines = [json.dumps(line) + "\n" for line in [about, *map(_line, results.runs)]]
    if not target.parent.is_dir():
        raise StoreError(f"cannot write {target}: there is no folder {target.parent}; make it first")
    replace_text(target, "".join(lines))
    return len(results.runs)


def _line(run: RunResult) -> dict[str, Any]:
    drawn = History([], {}) if run.chosen is False and not run.final else run.history
    return {
        **{name: getattr(run, name) for name in FACTS},
        "spec": run.spec,
        "final": run.final,
        "scores": run.source.scores(),
        "machines": run.source.machines(),
        **drawn.plain(),
    }


def read(path: Path) -> Results:
    """Return the study in a file."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    try:
        about = json.loads(lines[0])
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']!r}")
        count = _of(about, "runs", int)
        given = {name: _of(about, name, kind) for name, kind in ABOUT.items()}
        for name in ("scaled", "seeds", "tuned"):
            given[name] = tuple(given[name])
        if not {axis for role, axis in given["layout"].items() if role != "metrics"} <= set(given["axes"]):
            raise ValueError("the layout of another study")
    except DAMAGE as error:
        raise _refusal(path, 1) from error
    runs = []
    for number, text in enumerate(lines[1:], start=2):
        try:
            runs.append(_run(json.loads(text), given["axes"]))
        except DAMAGE as error:
            raise _refusal(path, number) from error
    if len(runs) != count:
        raise StoreError(
            f"{path} holds {len(runs)} runs, and its first line says {count}: it was cut off, or added to; "
            f"make it with demoa export FOLDER NAME{SUFFIX}"
        )
    return Results(**given, runs=tuple(runs))


def _refusal(path: Path, number: int) -> StoreError:
    return StoreError(f"{path} does not hold a study (line {number}); make it with demoa export FOLDER NAME{SUFFIX}")


def _run(line: Mapping[str, Any], axes: Mapping[str, Any]) -> RunResult:
    """Return the run in a line, every part of which is looked at: later it is only used."""
    facts = {name: _of(line, name, kind) for name, kind in FACTS.items()}
    if set(facts["cell"]) != set(axes):
        raise ValueError("the labels of another study")
    for name, kind in HELD.items():
        _of(line, name, kind)
    if not all(isinstance(name, str) for name in _of({"machines": [], **line}, "machines", list)):
        raise TypeError("machines")
    for figure in line["final"].values():
        if figure is not None and not math.isfinite(figure):
            raise ValueError("a figure that is no number")
    if line["spec"]:
        int(line["spec"]["run"]["rounds"])
    [int(number) for number in line["scores"]]
    History.of(line)
    return RunResult(**facts, source=KeptSource(dict(line)))


def _of(table: Mapping[str, Any], name: str, kind: Any) -> Any:
    """Return what stands under a name, if it is of the right kind."""
    if not isinstance(table[name], kind):
        raise TypeError(name)
    return table[name]


def restore(path: Path, folder: StudyFolder, wanted: Callable[[RunResult], bool]) -> int:
    """Put runs that a file holds into the folder of a study, which is open, and return how many were taken.

    A run that is not wanted, that failed, or that has begun in the folder is left out. One that was on its way when
    the file was written keeps what validation said of it, and is played from its start where it has to go on.
    """
    taken = 0
    for run in read(path).runs:
        target = folder.run(run.id)
        if run.spec and run.status != "failed" and not target.has_begun and wanted(run):
            target.take(
                run.id,
                run.spec,
                scores=run.source.scores(),
                final=run.final,
                history=run.history.plain(),
                machines=run.source.machines(),
            )
            if run.seconds is not None:
                rounds = int(run.spec["run"]["rounds"]) if run.final else max(map(int, run.source.scores()), default=0)
                event = {"event": "ended", "run": run.id, "outcome": "known", "error": None}
                folder.log({**event, "rounds": rounds, "seconds": run.seconds})
            taken += 1
    return taken
