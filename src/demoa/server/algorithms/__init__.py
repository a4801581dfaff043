"""Federated optimizers, all on the same rows. `ALGORITHMS` is the whole list."""

from collections.abc import Mapping

from demoa.server.algorithms.algorithm import Algorithm
from demoa.server.algorithms.demoa import Demoa
from demoa.server.algorithms.fedavg import FedAvg
from demoa.server.algorithms.fedcm import FedCM
from demoa.server.algorithms.hold import Hold
from demoa.server.algorithms.marina_pp import MarinaPP
from demoa.server.algorithms.mifa import Mifa

ALGORITHMS: Mapping[str, type[Algorithm]] = {
    "demoa": Demoa,
    "fedavg": FedAvg,
    "fedcm": FedCM,
    "hold": Hold,
    "marina_pp": MarinaPP,
    "mifa": Mifa,
}
"""Every algorithm by its name."""

__all__ = ["ALGORITHMS", "Algorithm", "Demoa", "FedAvg", "FedCM", "Hold", "MarinaPP", "Mifa"]
