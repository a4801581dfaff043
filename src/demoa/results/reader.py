"""What is in a folder of runs: a study, or runs that lie side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError
from demoa.results.folder import Record, RunFolder
from demoa.results.labels import flat_spec, label
from demoa.results.study import StudyFolder

METRICS = ("accuracy", "loss", "train_loss", "aggregation_error")
"""What a run is drawn by. The first two are measured now and then; the others come with every round."""


@dataclass(frozen=True)
class History:
    """A run as it is drawn: the Byzantine-majority rounds, and (round, value) for each metric that it has.

    A metric that comes with every round is averaged since the point before.
    """

    majority: list[int]
    points: dict[str, list[tuple[int, float]]]


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

    @property
    def records(self) -> list[Record]:
        """The record of each round; empty if the run never began."""
        return self.folder.records() if (self.folder.path / "records.jsonl").exists() else []

    @cached_property
    def history(self) -> History:
        """What is drawn of the run; a small part of its records."""
        return _history(self.records)


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


def _history(records: list[Record]) -> History:
    points: dict[str, list[tuple[int, float]]] = {metric: [] for metric in METRICS}
    between: dict[str, list[float]] = {metric: [] for metric in METRICS[2:]}
    for record in records:
        for metric, values in between.items():
            if record.get(metric) is not None:
                values.append(record[metric])
        if "loss" not in record:
            continue
        for metric in METRICS[:2]:
            if metric in record:
                points[metric].append((record["round"], _number(record[metric])))
        for metric, values in between.items():
            points[metric].append((record["round"], sum(values) / len(values) if values else float("nan")))
            values.clear()
    measured = {metric: found for metric, found in points.items() if any(value == value for _, value in found)}
    return History([record["round"] for record in records if record.get("majority")], measured)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


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
    columns = {key: [label(spec.get(key, "-")) for spec in specs] for key in sorted(keys, key=_names_first)}
    axes: dict[str, list[str]] = {}
    for key, column in columns.items():
        if len(set(column)) > 1 and not any(_follows(key, column, axis, columns[axis]) for axis in axes):
            axes[key] = list(dict.fromkeys(column))
    axes = axes or {"algorithm.name": columns.get("algorithm.name", ["-"])[:1]}
    cells = [{axis: columns[axis][place] if axis in columns else "-" for axis in axes} for place in range(len(folders))]
    seeds = [int(spec.get("run.seed", 0)) for spec in specs]
    if len({(*cell.values(), seed) for cell, seed in zip(cells, seeds, strict=True)}) < len(folders):
        axes["folder"] = [folder.path.name for folder in folders]  # the same run twice: each is a curve of its own
        cells = [cell | {"folder": name} for cell, name in zip(cells, axes["folder"], strict=True)]
    runs = [
        RunResult(
            id=folder.spec()[0],
            cell=cell,
            setting={},
            seed=seed,
            chosen=True,
            status=_status(folder, True),
            error=folder.error(),
            folder=folder,
        )
        for folder, cell, seed in zip(folders, cells, seeds, strict=True)
    ]
    return Results(title, "", (), axes, tuple(sorted(set(seeds))), (), "grid", tuple(runs))


def _names_first(key: str) -> bool:
    return not key.endswith(".name")


def _follows(key: str, column: list[str], axis: str, labels: list[str]) -> bool:
    """Say whether a key is only an option that comes with the name of its variant, such as algorithm.alpha."""
    same = key.rpartition(".")[0] == axis.rpartition(".")[0] and axis.endswith(".name")
    return same and len(set(zip(labels, column, strict=True))) == len(set(labels))
