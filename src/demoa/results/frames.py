"""Results as data frames, and as Parquet and CSV files."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

from demoa.core.checks import require
from demoa.core.errors import ConfigError, StoreError
from demoa.results import archive
from demoa.results.labels import flat_spec
from demoa.results.reader import read_results
from demoa.results.run import Results, RunResult

KINDS = ("runs", "rounds")
LIBRARIES = ("polars", "pandas")

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


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
    try:
        made = importlib.import_module(library)
    except ImportError:
        raise ConfigError(f"data frames need {library}: pip install {library}") from None
    numbers = _number_axes(results)
    if what == "runs":
        return _frame(made, [_run_row(run, numbers) for run in results.runs])
    # Frame by frame, as the rows of all runs together would take many times their memory.
    parts = [_frame(made, rows) for run in results.runs if (rows := _round_rows(run, numbers))]
    if not parts:
        return _frame(made, [])
    if library == "pandas":
        return made.concat(parts, ignore_index=True)
    return made.concat(parts, how="diagonal_relaxed")


def export(folder: str | Path, target: str | Path, what: str = "runs") -> int:
    """Write the results in a folder to a file, and return how many rows there are.

    A .parquet or .csv file is a table for other programs; a .jsonl file is the whole study, for `demoa report`.
    """
    target = Path(target)
    if target.suffix not in (".parquet", ".csv", archive.SUFFIX):
        raise ConfigError(f"the file must end in .parquet, .csv or {archive.SUFFIX}, got {target.name!r}")
    if target.suffix == archive.SUFFIX:
        require(what == "runs", "what", what, f"'runs': a {archive.SUFFIX} file holds no records of single rounds")
        return archive.write(read_results(Path(folder)), target)
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


def _frame(library: Any, rows: list[dict[str, Any]]) -> Any:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    options = {"strict": False, "infer_schema_length": None} if library.__name__ == "polars" else {}
    return library.DataFrame(columns, **options)


def _run_row(run: RunResult, numbers: set[str]) -> dict[str, Any]:
    facts = {"run": run.id, "status": run.status, "error": run.error, "chosen": run.chosen, "seconds": run.seconds}
    labels = _typed(run.cell | run.setting, numbers)
    return facts | labels | flat_spec(run.spec) | labels | {"run.seed": run.seed} | run.final


def _round_rows(run: RunResult, numbers: set[str]) -> list[dict[str, Any]]:
    shared = {"run": run.id, "chosen": run.chosen, **_typed(run.cell | run.setting, numbers), "run.seed": run.seed}
    return [shared | record | {"rejected": _json(record.get("rejected"))} for record in run.records]


def _number_axes(results: Results) -> set[str]:
    """Return the axes whose labels are all numbers."""
    labels: dict[str, set[str]] = {}
    for run in results.runs:
        for axis, label in (run.cell | run.setting).items():
            labels.setdefault(axis, set()).add(label)
    return {axis for axis, found in labels.items() if all(NUMBER.fullmatch(label) for label in found)}


def _typed(labels: dict[str, str], numbers: set[str]) -> dict[str, Any]:
    """Return the labels of axes, as numbers where they are numbers."""
    return {axis: json.loads(label) if axis in numbers else label for axis, label in labels.items()}
