"""Results as data frames, and as Parquet and CSV files."""

from __future__ import annotations

import contextlib
import importlib
import json
from pathlib import Path
from typing import Any

from demoa.core.checks import require
from demoa.core.errors import ConfigError, StoreError
from demoa.results.reader import Results, flat_spec, read_results

KINDS = ("runs", "rounds")
LIBRARIES = ("polars", "pandas")

Columns = dict[str, list[Any]]


def load(folder: str | Path, what: str = "runs", library: str = "polars") -> Any:
    """Return the results in a folder as a data frame.

    Args:
        folder: A study's folder, a run's, or one with runs inside it.
        what: "runs": a row per run, with its spec, status and final figures. "rounds": a row per round of every run,
            with all that was recorded.
        library: "polars" or "pandas".

    Columns are the axes of the study under their names, the keys of the spec (run.lr, attack.name, ...), and the
    figures. A run that failed or is missing has a row as well, with its status and its error.
    """
    require(what in KINDS, "what", what, "'runs' or 'rounds'")
    require(library in LIBRARIES, "library", library, "'polars' or 'pandas'")
    results = read_results(Path(folder))
    columns = _runs(results) if what == "runs" else _rounds(results)
    try:
        made = importlib.import_module(library)
    except ImportError:
        raise ConfigError(f"data frames need {library}: pip install {library}") from None
    if library == "pandas":
        return made.DataFrame(columns)
    return made.DataFrame(columns, strict=False, infer_schema_length=None)


def export(folder: str | Path, target: str | Path, what: str = "runs") -> int:
    """Write the results in a folder to a .parquet or .csv file, and return how many rows there are."""
    target = Path(target)
    if target.suffix not in (".parquet", ".csv"):
        raise ConfigError(f"the file must end in .parquet or .csv, got {target.name!r}")
    frame = load(folder, what)
    try:
        if target.suffix == ".parquet":
            frame.write_parquet(target)
        else:
            _without_nesting(frame).write_csv(target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error}") from error
    return len(frame)


def _without_nesting(frame: Any) -> Any:
    """Return a frame with lists and tables as JSON, which is how CSV can hold them."""
    import polars

    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    texts = [polars.Series(name, [_json(value) for value in frame[name].to_list()], polars.String) for name in nested]
    return frame.with_columns(texts)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _runs(results: Results) -> Columns:
    rows = []
    for run in results.runs:
        facts = {"run": run.id, "status": run.status, "error": run.error, "chosen": run.chosen, "seconds": run.seconds}
        labels = _typed(run.cell | run.setting)
        rows.append(facts | labels | {"run.seed": run.seed} | flat_spec(run.spec) | run.final)
    return _columns(rows)


def _rounds(results: Results) -> Columns:
    rows = []
    for run in results.runs:
        shared = {"run": run.id, "chosen": run.chosen, **_typed(run.cell | run.setting), "run.seed": run.seed}
        rows += [shared | record | {"rejected": _json(record.get("rejected"))} for record in run.records]
    return _columns(rows)


def _typed(labels: dict[str, str]) -> dict[str, Any]:
    """Return the labels of axes, as numbers where they are numbers."""

    def value(label: str) -> Any:
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return kind(label)
        return label

    return {axis: value(label) for axis, label in labels.items()}


def _columns(rows: list[dict[str, Any]]) -> Columns:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}
