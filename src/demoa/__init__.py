"""Federated training that stays right although most clients are absent and some of them lie.

demoa.Server      the server: one momentum row per client, aggregated robustly over all of them
demoa.aggregate   one robust aggregation of rows, for people who want only the rule
"""

from demoa.aggregation import mixing, rules, stores
from demoa.aggregation.aggregate import aggregate
from demoa.core.errors import ConfigError, DemoaError, RoundError, StoreError, ToleranceError, UpdateRejected
from demoa.core.threads import get_threads, set_threads
from demoa.server import algorithms
from demoa.server.momentum import client_momentum
from demoa.server.round import Round, RoundReport
from demoa.server.server import Server

__all__ = [
    "ConfigError",
    "DemoaError",
    "Round",
    "RoundError",
    "RoundReport",
    "Server",
    "StoreError",
    "ToleranceError",
    "UpdateRejected",
    "aggregate",
    "algorithms",
    "client_momentum",
    "get_threads",
    "mixing",
    "rules",
    "set_threads",
    "stores",
]

__version__ = "0.1.0"
