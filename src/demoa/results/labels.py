"""What values of a spec are called in tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def label(value: Any) -> str:
    """Return what a value is called: one word for one value, so that different values have different words.

    >>> label(0.1), label(["bucketing"]), label([]), label({"name": "dirichlet", "alpha": 0.3})
    ('0.1', 'bucketing', 'none', 'dirichlet, alpha 0.3')
    """
    if isinstance(value, Mapping):
        name = [str(value["name"])] if "name" in value else []
        return ", ".join([*name, *(f"{key} {label(item)}" for key, item in value.items() if key != "name")])
    if isinstance(value, list | tuple):
        return " + ".join(label(item) for item in value) or "none"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def flat_spec(spec: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a spec as one level of dotted keys; lists, such as mixings, as words.

    >>> flat_spec({"run": {"lr": 0.1}, "attack": {"name": "alie"}, "aggregation": {"mixing": []}})
    {'run.lr': 0.1, 'attack.name': 'alie', 'aggregation.mixing': 'none'}
    """
    found: dict[str, Any] = {}
    for key, value in spec.items():
        if isinstance(value, Mapping):
            found |= flat_spec(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = label(value) if isinstance(value, list | tuple) else value
    return found
