"""What clients train on. `DATASETS` is the whole list."""

from collections.abc import Callable, Mapping

from demoa.core.examples import Dataset, Examples
from demoa.data.digits import digits
from demoa.data.images import cifar10, mnist

DATASETS: Mapping[str, Callable[[], Dataset]] = {"cifar10": cifar10, "digits": digits, "mnist": mnist}
"""Every data set by its name."""

__all__ = ["DATASETS", "Dataset", "Examples", "cifar10", "digits", "mnist"]
