"""All families and their members, one line each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from demoa.aggregation.mixing import MIXINGS
from demoa.aggregation.rules import RULE_ALIASES, RULES
from demoa.aggregation.stores import STORES
from demoa.attacks import ATTACK_ALIASES, ATTACKS
from demoa.data import DATASETS
from demoa.models import MODELS
from demoa.partition import PARTITIONS
from demoa.sampling import SAMPLINGS
from demoa.server.algorithms import ALGORITHMS

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "rules": RULES,
    "mixings": MIXINGS,
    "stores": STORES,
    "algorithms": ALGORITHMS,
    "attacks": ATTACKS,
    "samplings": SAMPLINGS,
    "partitions": PARTITIONS,
    "models": MODELS,
    "data sets": DATASETS,
}


def list_families(console: Console) -> None:
    """Print every member of every family with the first line of its description."""
    short: dict[str, list[str]] = {}
    for alias, name in [*RULE_ALIASES.items(), *ATTACK_ALIASES.items()]:
        short.setdefault(name, []).append(alias)
    for family, members in FAMILIES.items():
        console.print(f"\n[bold]{family}[/bold]")
        for name, member in sorted(members.items()):
            title = f"{name} ({', '.join(short[name])})" if name in short else name
            line = (inspect.getdoc(member) or "").splitlines()[0]
            console.print(f"  {title:<26}{line}", markup=False, highlight=False, soft_wrap=True)
