"""What is in a folder of runs: a study, or runs that lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demoa.core.errors import ConfigError
from demoa.results import archive
from demoa.results.folder import Record, RunFolder
from demoa.results.labels import flat_spec, label
from demoa.results.run import METRICS, History, Results, RunResult
from demoa.results.study import StudyFolder


@dataclass(frozen=True)
class FolderSource:
    """A run's own folder."""

    folder: RunFolder

    def spec(self) -> dict[str, Any]:
        """Return the whole spec; empty if the run never began."""
        return self.folder.spec()[1] if self.folder.has_begun else {}

    def final(self) -> Record:
        """Return the final figures; empty if there are none."""
        return self.folder.final() or {}

    def scores(self) -> dict[str, Record]:
        """Return what validation said on the way, by round."""
        return self.folder.scores()

    def machines(self) -> list[str]:
        """Return on what the run was played; empty if that is not known."""
        return self.folder.machines()

    def records(self) -> list[Record]:
        """Return the record of each round; empty if the run never began."""
        if self.folder.history() is not None:
            raise ConfigError(f"{self.folder.path} came from a file that holds no records of single rounds")
        return self.folder.records() if (self.folder.path / "records.jsonl").exists() else []

    def history(self) -> History:
        """Return what is drawn of the run; a small part of its records."""
        kept = self.folder.history()
        return _history(self.records()) if kept is None else History.of(kept)


def read_results(path: Path) -> Results:
    """Return all runs in a folder: of a study, the run itself, or those in the folders inside it; or in an archive."""
    if path.suffix == archive.SUFFIX and path.is_file():
        return archive.read(path)
    if (path / "study.json").exists():
        return _study(StudyFolder(path))
    folders = runs_in(path)
    if not path.exists():
        raise ConfigError(f"{path} is not there: give the folder of a study or of runs, or a {archive.SUFFIX} file")
    if not folders:
        raise ConfigError(f"{path} holds no runs: neither a study.json, nor a spec.json in it or in a folder inside it")
    return side_by_side(path.resolve().name, [RunFolder(each) for each in folders])


def runs_in(path: Path) -> list[Path]:
    """Return the folders of the runs in a folder: its own, or those inside it."""
    if (path / "spec.json").exists():
        return [path]
    return sorted(found.parent for found in path.glob("*/spec.json"))


def told_apart(paths: Sequence[Path]) -> list[str]:
    """Return a name for each of some folders: the last part of its path, or as many as it takes.

    >>> told_apart([Path("a/one"), Path("a/other")]), told_apart([Path("a/one"), Path("b/one")])
    (['one', 'other'], ['a/one', 'b/one'])
    """
    parts = [path.resolve().parts for path in paths]
    names: list[str] = []
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-count:]) for each in parts]
        if len(set(names)) == len(names):
            break
    return names


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
                        source=FolderSource(run),
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
    if not run.has_begun:
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
        axes["folder"] = told_apart([folder.path for folder in folders])  # the same run twice
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
            source=FolderSource(folder),
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
