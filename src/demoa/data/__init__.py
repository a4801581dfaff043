"""What clients train on. `DATASETS` is the whole list."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demoa.core.errors import unknown_name
from demoa.core.examples import Dataset, Examples
from demoa.core.imports import imported, is_import_path
from demoa.data.digits import digits
from demoa.data.images import cifar10, mnist
from demoa.data.own import from_import, from_npz
from demoa.data.synthetic import least_squares, quadratics

DATASETS: Mapping[str, Callable[..., Dataset]] = {
    "cifar10": cifar10,
    "digits": digits,
    "least_squares": least_squares,
    "mnist": mnist,
    "quadratics": quadratics,
}
"""Every data set by its name."""


def load_dataset(name: str, options: Mapping[str, Any] | None = None) -> Dataset:
    """Return a data set by its name, from an .npz file, or as package.module:name makes it, with its options."""
    options = options or {}
    check_dataset(name, options)
    if is_import_path(name):
        return from_import(name, options)
    return from_npz(Path(name)) if name.endswith(".npz") else DATASETS[name](**options)


def check_dataset(name: str, options: Mapping[str, Any]) -> None:
    """Raise ConfigError unless there is a data set of that name with these options; none is loaded."""
    if is_import_path(name):
        imported("data set", name)
        return
    own_file = name.endswith(".npz")
    if not own_file and name not in DATASETS:
        raise unknown_name("data set", name, [*DATASETS, "a file.npz", "package.module:name"])
    known = [] if own_file else list(inspect.signature(DATASETS[name]).parameters)
    for option in options:
        if option not in known:
            raise unknown_name(f"option of data set {name}", option, known or ["(it has none)"])


__all__ = [
    "DATASETS",
    "Dataset",
    "Examples",
    "check_dataset",
    "cifar10",
    "digits",
    "least_squares",
    "load_dataset",
    "mnist",
    "quadratics",
]
