"""What clients train on. `DATASETS` is the whole list."""

from collections.abc import Callable, Mapping
from pathlib import Path

from demoa.core.errors import unknown_name
from demoa.core.examples import Dataset, Examples
from demoa.core.imports import is_import_path
from demoa.data.digits import digits
from demoa.data.images import cifar10, mnist
from demoa.data.own import from_function, from_npz

DATASETS: Mapping[str, Callable[[], Dataset]] = {"cifar10": cifar10, "digits": digits, "mnist": mnist}
"""Every data set by its name."""


def load_dataset(name: str) -> Dataset:
    """Return a data set by its name, from an .npz file, or from a function at package.module:name."""
    if is_import_path(name):
        return from_function(name)
    if name.endswith(".npz"):
        return from_npz(Path(name))
    if name not in DATASETS:
        raise unknown_name("data set", name, [*DATASETS, "a file.npz", "package.module:function"])
    return DATASETS[name]()


__all__ = ["DATASETS", "Dataset", "Examples", "cifar10", "digits", "load_dataset", "mnist"]
