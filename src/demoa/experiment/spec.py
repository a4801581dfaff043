"""What a run is, completely: frozen sections, and the only defaults of the package."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from demoa.results.folder import FORMAT


@dataclass(frozen=True)
class Variant:
    """One member of a family, by name, and its options.

    In a spec: `rule = "krum"`, or `rule = {name = "centered_clip", tau = 1.0}`.
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What is learned from what."""

    dataset: Variant = field(default_factory=lambda: Variant("digits"))
    model: Variant = field(default_factory=lambda: Variant("mlp"))
    partition: Variant = field(default_factory=lambda: Variant("iid"))


@dataclass(frozen=True)
class Clients:
    """Who learns, and who lies.

    `adversary_sees`: which honest rows an attack is shown: those that are "aggregated", if it is not given, those of
    the clients "sampled" in this round, or "all".
    `adversary_lies_in`: "all" rounds, if it is not given, those with a Byzantine "majority", or the others, "minority".
    """

    n: int = 25
    byzantine: int = 5
    batch_size: int = 32
    local_steps: int = 1
    local_lr: float = 0.1
    adversary_sees: str | None = None
    adversary_lies_in: str | None = None


@dataclass(frozen=True)
class Aggregation:
    """How rows become one: f is the number of Byzantine clients if it is not given.

    `sketch`: compute the rows' inner products from so many numbers of each, in place of all.
    """

    rule: Variant = field(default_factory=lambda: Variant("centered_clip"))
    f: int | None = None
    mixing: tuple[Variant, ...] = ()
    store: Variant = field(default_factory=lambda: Variant("dense"))
    sketch: int | None = None


@dataclass(frozen=True)
class Run:
    """How long, from which seed, where, and how often to look.

    `heterogeneity_every`: how often the constants zeta and B of the theory are estimated; 0 is never.
    `threads`: torch adds up in another order with another number of them, so it is part of what a run is.
    `precision`: what models compute in: "float32", if it is not given, or "bfloat16" where that is enough.
    """

    rounds: int = 300
    seed: int = 0
    lr: float = 0.1
    eval_every: int = 10
    eval_examples: int = 1000
    checkpoint_every: int = 50
    heterogeneity_every: int = 0
    device: str = "cpu"
    threads: int = 1
    precision: str | None = None


@dataclass(frozen=True)
class Seeds:
    """The seed of each kind of random draws, where it is not to be run.seed: the others' draws stay as they are."""

    data: int | None = None
    model: int | None = None
    sampling: int | None = None
    clients: int | None = None
    attack: int | None = None
    mixing: int | None = None

    def of(self, kind: str, default: int) -> int:
        """Return the seed of a kind of draws."""
        own: int | None = getattr(self, kind)
        return default if own is None else own


@dataclass(frozen=True)
class Spec:
    """A run: two runs with equal specs are the same run."""

    task: Task = field(default_factory=Task)
    clients: Clients = field(default_factory=Clients)
    sampling: Variant = field(default_factory=lambda: Variant("bernoulli", {"p": 0.1}))
    algorithm: Variant = field(default_factory=lambda: Variant("demoa"))
    aggregation: Aggregation = field(default_factory=Aggregation)
    attack: Variant = field(default_factory=lambda: Variant("alie"))
    run: Run = field(default_factory=Run)
    seeds: Seeds = field(default_factory=Seeds)

    def seed(self, kind: str) -> int:
        """Return the seed of a kind of draws: its own, or that of the run."""
        return self.seeds.of(kind, self.run.seed)


def run_id(resolved: dict[str, Any]) -> str:
    """Return the identity of a run: a hash of its whole spec, every default filled in, and of the results' format."""
    text = json.dumps({"format": FORMAT, "spec": resolved}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
