"""Trackers: where else a run is shown while it goes on. `TRACKERS` is the whole list."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from demoa.core.errors import ConfigError, DemoaError, first_line, unknown_name

Record = Mapping[str, Any]


class Tracker(Protocol):
    """Takes the records of one run as they come."""

    def log(self, record: Record) -> None:
        """Take the record of a round."""
        ...

    def close(self, final: Record | None) -> None:
        """Take the final figures, or None if the run was interrupted."""
        ...


class TensorBoard:
    """Event files in the run's folder, for `tensorboard --logdir`."""

    def __init__(self, folder: Path, identity: str, spec: Mapping[str, Any], done: int) -> None:
        """Drop what was written after the last round that is done."""
        _needs("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)

    def log(self, record: Record) -> None:
        """Write every number of the record."""
        for name, value in _numbers(record).items():
            self._writer.add_scalar(name, value, record["round"])

    def close(self, final: Record | None) -> None:
        """Write what is left; the final figures are in the folder beside."""
        self._writer.close()


class MLflow:
    """A run of the MLflow experiment `demoa`, where MLFLOW_TRACKING_URI points to."""

    def __init__(self, folder: Path, identity: str, spec: Mapping[str, Any], done: int) -> None:
        """Begin a run, or take up the one of this identity."""
        mlflow = _needs("mlflow", "mlflow")
        # Through a client, as runs that go on side by side cannot all be the active run.
        self._client = mlflow.MlflowClient()
        experiment = mlflow.set_experiment("demoa").experiment_id
        known = self._client.search_runs([experiment], f"tags.demoa = '{identity}'")
        if known:
            self._run = known[0].info.run_id
        else:
            self._run = self._client.create_run(experiment, run_name=folder.name, tags={"demoa": identity}).info.run_id
            for name, value in _flat(spec).items():
                self._client.log_param(self._run, name, value)

    def log(self, record: Record) -> None:
        """Write every number of the record."""
        for name, value in _numbers(record).items():
            self._client.log_metric(self._run, name, value, step=record["round"])

    def close(self, final: Record | None) -> None:
        """Write the final figures and end the run, as killed if it was interrupted."""
        for name, value in _numbers(final or {}).items():
            self._client.log_metric(self._run, name, value)
        self._client.set_terminated(self._run, "KILLED" if final is None else "FINISHED")


class WeightsAndBiases:
    """A run of the Weights & Biases project `demoa`; WANDB_MODE=offline keeps it in the run's folder."""

    def __init__(self, folder: Path, identity: str, spec: Mapping[str, Any], done: int) -> None:
        """Begin a run, or take up the one of this identity."""
        wandb = _needs("wandb", "wandb")
        self._run = wandb.init(
            project="demoa",
            id=identity,
            resume="allow",
            reinit="create_new",  # runs may go on side by side
            name=folder.name,
            config=_flat(spec),
            dir=str(folder),
        )

    def log(self, record: Record) -> None:
        """Write every number of the record."""
        self._run.log(_numbers(record), step=record["round"])

    def close(self, final: Record | None) -> None:
        """Write the final figures and end the run."""
        if final is not None:
            self._run.summary.update(_numbers(final))
        self._run.finish(exit_code=1 if final is None else 0)


TRACKERS: Mapping[str, Callable[[Path, str, Mapping[str, Any], int], Tracker]] = {
    "mlflow": MLflow,
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}
"""Every tracker by its name: made from the run's folder, its identity, its spec, and how many rounds are done."""


def check_tracker(name: str) -> None:
    """Raise ConfigError if there is no tracker of that name."""
    if name not in TRACKERS:
        raise unknown_name("tracker", name, TRACKERS)


def make_tracker(name: str, folder: Path, spec: Mapping[str, Any], done: int) -> Tracker:
    """Return the tracker of a known name for a run.

    Raises:
        ConfigError: It is not installed, or it does not start.
    """
    try:
        return TRACKERS[name](folder, _identity(folder), spec, done)
    except DemoaError:
        raise
    except Exception as error:  # whatever its own library may raise
        raise ConfigError(f"tracker {name} cannot start: {first_line(error)}") from error


def _identity(folder: Path) -> str:
    """Return the name by which trackers know the run in a folder, made up once: two runs of one spec are two."""
    file = folder / "tracked_as"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(uuid.uuid4().hex)
    return file.read_text()


def _needs(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{module} is not installed: pip install 'demoa[{extra}]'") from error


def _numbers(record: Record) -> dict[str, float]:
    return {name: float(value) for name, value in record.items() if isinstance(value, int | float)}


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested table as one level of dotted names.

    >>> _flat({"run": {"seed": 0}, "n": 1})
    {'run.seed': 0, 'n': 1}
    """
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
