"""What is in a folder of runs: a study, or runs that lie side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError
from demoa.results.folder import Record, RunFolder
from demoa.results.study import StudyFolder


@dataclass(frozen=True)
class RunResult:
    """A run, as far as it came.

    Attributes:
        id: Its identity.
        cell: What is compared, by axis.
        setting: What was tuned, by axis.
        seed: Its seed.
        chosen: Whether its setting is the one that its cell is judged by; None if that is not settled.
        status: "done", "failed", "dropped" (by halving), "unfinished", or "missing".
        error: Why it failed.
        folder: Where it lies.
        seconds: How long it was played, where that is known.
    """

    id: str
    cell: dict[str, str]
    setting: dict[str, str]
    seed: int
    chosen: bool | None
    status: str
    error: str | None
    folder: RunFolder
    seconds: float | None = None

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The whole spec; empty if the run never began."""
        return self.folder.spec()[1] if (self.folder.path / "spec.json").exists() else {}

    @cached_property
    def final(self) -> Record:
        """The final figures; empty if there are none."""
        return self.folder.final() or {}

    @cached_property
    def records(self) -> list[Record]:
        """The record of each round; empty if the run never began."""
        return self.folder.records() if (self.folder.path / "records.jsonl").exists() else []


@dataclass(frozen=True)
class Results:
    """All runs of a folder, and what is known about them as a whole.

    Attributes:
        title: What it is called.
        note: What a reader should know.
        scaled: What was made smaller than it should be.
        axes: What is compared: the labels of each axis, in order.
        seeds: What is averaged over.
        tuned: The names of what was tuned, and how.
        runs: The runs, in the order of the grid.
        layout: What the study says about its figures.
    """

    title: str
    note: str
    scaled: tuple[str, ...]
    axes: dict[str, list[str]]
    seeds: tuple[int, ...]
    tuned: tuple[str, ...]
    method: str
    runs: tuple[RunResult, ...]
    layout: dict[str, Any] = field(default_factory=dict)


def read_results(path: Path) -> Results:
    """Return all runs in a folder: of a study, the run itself, or those in the folders inside it."""
    if (path / "study.json").exists():
        return _study(StudyFolder(path))
    inside = sorted(found.parent for found in path.glob("*/spec.json"))
    folders = [path] if (path / "spec.json").exists() else inside
    if not folders:
        raise ConfigError(f"{path} holds no runs: neither a study.json, nor a spec.json in it or in a folder inside it")
    return side_by_side(path.resolve().name, [RunFolder(each) for each in folders])


def flat_spec(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a spec as one level of dotted keys; a variant stands under its section's name.

    >>> flat_spec({"run": {"lr": 0.1}, "attack": {"name": "alie", "z": None}})
    {'run.lr': 0.1, 'attack.name': 'alie', 'attack.z': None}
    """
    found: dict[str, Any] = {}
    for key, value in spec.items():
        if isinstance(value, Mapping):
            found |= flat_spec(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            found[prefix + key] = " + ".join(_word(item) for item in value) or "none"
        else:
            found[prefix + key] = value
    return found


def _word(item: Any) -> str:
    return str(item["name"]) if isinstance(item, Mapping) else str(item)


def _study(folder: StudyFolder) -> Results:
    content, chosen = folder.content(), folder.chosen()
    seconds: dict[str, float] = {}
    for event in folder.journal():
        if event["event"] == "ended":
            seconds[event["run"]] = seconds.get(event["run"], 0.0) + event["seconds"]
    runs = []
    for place, cell in enumerate(content["cells"]):
        best = chosen.get(place)
        for number, setting in enumerate(cell["settings"]):
            for seed, identity in setting["runs"].items():
                run = folder.run(identity)
                is_chosen = None if best is None else best == number
                runs.append(
                    RunResult(
                        id=identity,
                        cell=cell["labels"],
                        setting=setting["labels"],
                        seed=int(seed),
                        chosen=is_chosen,
                        status=_status(run, is_chosen),
                        error=run.error(),
                        folder=run,
                        seconds=seconds.get(identity),
                    )
                )
    return Results(
        title=content["title"],
        note=content["note"],
        scaled=tuple(content["scaled"]),
        axes=content["axes"],
        seeds=tuple(content["seeds"]),
        tuned=tuple(content["tune"]["axes"]),
        method=content["tune"]["method"],
        runs=tuple(runs),
        layout=content["report"],
    )


def _status(run: RunFolder, chosen: bool | None) -> str:
    if (run.path / "final.json").exists():
        return "done"
    if run.error() is not None:
        return "failed"
    if not (run.path / "spec.json").exists():
        return "missing"
    return "dropped" if chosen is False else "unfinished"


def side_by_side(title: str, folders: list[RunFolder]) -> Results:
    """Return runs that no study made: what differs between their specs is what is compared."""
    specs = [flat_spec(folder.spec()[1]) for folder in folders]
    keys = [key for key in dict.fromkeys(key for spec in specs for key in spec) if key != "run.seed"]
    columns = {key: [_label(spec.get(key, "-")) for spec in specs] for key in sorted(keys, key=_names_first)}
    axes: dict[str, list[str]] = {}
    for key, column in columns.items():
        follows = any(len(set(zip(columns[other], column, strict=True))) == len(axes[other]) for other in axes)
        if (
            len(set(column)) > 1 and not follows
        ):  # the options of an algorithm change with its name: no axis of their own
            axes[key] = list(dict.fromkeys(column))
    axes = axes or {"algorithm.name": columns["algorithm.name"][:1]}
    runs = [
        RunResult(
            id=folder.spec()[0],
            cell={key: _label(spec.get(key, "-")) for key in axes},
            setting={},
            seed=int(spec["run.seed"]),
            chosen=True,
            status=_status(folder, True),
            error=folder.error(),
            folder=folder,
        )
        for folder, spec in zip(folders, specs, strict=True)
    ]
    seeds = tuple(sorted({run.seed for run in runs}))
    return Results(title, "", (), axes, seeds, (), "grid", tuple(runs))


def _names_first(key: str) -> bool:
    return not key.endswith(".name")


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
