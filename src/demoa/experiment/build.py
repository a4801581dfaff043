"""From a Spec to a federation that is ready to play."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from demoa.aggregation.mixing import MIXINGS, Mixing
from demoa.aggregation.rules import RULE_ALIASES, RULES, Rule
from demoa.aggregation.stores import STORES, StoreKind
from demoa.attacks import ATTACK_ALIASES, ATTACKS, Attack
from demoa.clients import Worker
from demoa.core.checks import require, whole_number
from demoa.core.devices import usable_device
from demoa.core.errors import ConfigError, first_line, unknown_name
from demoa.core.examples import Dataset
from demoa.core.flatten import FlatModel
from demoa.core.imports import imported, is_import_path
from demoa.core.registry import build, describe
from demoa.core.seeding import generator
from demoa.core.torch_seed import seeded_torch
from demoa.data import DATASETS, check_dataset, load_dataset
from demoa.experiment.spec import Spec, Variant
from demoa.models import MODELS
from demoa.models.bfloat16 import InBFloat16
from demoa.partition import PARTITIONS, Partition
from demoa.sampling import SAMPLINGS, Sampling
from demoa.server.algorithms import ALGORITHMS, Algorithm
from demoa.server.server import Server
from demoa.simulation.adversary import LIES_IN, SEES, Adversary
from demoa.simulation.federation import Federation


@dataclass(frozen=True)
class Experiment:
    """A federation, what it is judged on, and the spec with every default filled in."""

    spec: Spec
    resolved: dict[str, Any]
    dataset: Dataset
    federation: Federation
    validation: NDArray[np.intp]


CHOICES = (
    ("clients", "adversary_sees", SEES),
    ("clients", "adversary_lies_in", LIES_IN),
    ("run", "precision", ("float32", "bfloat16")),
)
"""Settings that take one of a few words; the first is meant where none is given."""

Loaded = dict[str, Dataset]
"""Data sets that were loaded before, so that runs side by side share them."""


def resolve(spec: Spec) -> dict[str, Any]:
    """Check all that can be checked without data, and return the spec as plain data with every default filled in."""
    parts = _Parts(spec)
    parts.server(spec, np.zeros(1, np.float32))
    check_dataset(spec.task.dataset.name, spec.task.dataset.options)
    _model_factory(spec.task.model)
    return parts.resolved(spec)


def make_experiment(spec: Spec, loaded: Loaded | None = None) -> Experiment:
    """Build all parts of a spec; every part checks what it is given."""
    clients = spec.clients
    parts = _Parts(spec)
    device = usable_device(spec.run.device)
    dataset = _dataset(spec, device, {} if loaded is None else loaded)
    if parts.attack.flips_labels and dataset.objective == "value":
        raise ConfigError(f"attack {spec.attack.name} flips labels, and {spec.task.dataset.name} has none; use another")
    module = _model(spec.task.model, dataset, spec.seed("model")).to(device)
    model = FlatModel(InBFloat16(module) if spec.run.precision == "bfloat16" else module)
    _check_fit(spec, model.module, dataset)
    held_out, shards = _shards(spec, dataset, parts.partition)
    server = parts.server(spec, model.parameters.clone())
    worker = Worker(
        model=model,
        dataset=dataset,
        shards=shards,
        batch_size=clients.batch_size,
        local_steps=clients.local_steps,
        local_lr=clients.local_lr,
        seed=spec.seed("clients"),
    )
    start = model.parameters.clone()
    federation = Federation(
        server=server,
        worker=worker,
        sampling=parts.sampling,
        adversary=Adversary(
            attack=parts.attack,
            byzantine=clients.byzantine,
            honest=clients.n - clients.byzantine,
            start=start,
            first=lambda place: worker.update(clients.byzantine + place, 1, start).vector,
            seed=spec.seed("attack"),
            sees=clients.adversary_sees or SEES[0],
            lies_in=clients.adversary_lies_in or LIES_IN[0],
        ),
        sampling_seed=spec.seed("sampling"),
    )
    return Experiment(spec, parts.resolved(spec), dataset, federation, held_out)


def expected_clients(spec: Spec) -> float:
    """Return how many clients take part in a round, on average."""
    sampling: Sampling = _make("sampling", Sampling, SAMPLINGS, spec.sampling)
    return float(np.mean(sampling.probability(2, spec.clients.n))) * spec.clients.n


class _Parts:
    """The variants of a spec, made; the plain numbers around them are checked."""

    def __init__(self, spec: Spec) -> None:
        run, clients = spec.run, spec.clients
        whole_number("run.heterogeneity_every", run.heterogeneity_every, least=0)
        for name in ("rounds", "eval_every", "eval_examples", "checkpoint_every", "threads"):
            whole_number(f"run.{name}", getattr(run, name), least=1)
        for name in ("n", "batch_size", "local_steps"):
            whole_number(f"clients.{name}", getattr(clients, name), least=1)
        liars = clients.byzantine
        require(0 <= liars < clients.n, "clients.byzantine", liars, f"from 0 to {clients.n - 1}")
        for table, name, allowed in CHOICES:
            chosen = getattr(getattr(spec, table), name)
            if chosen not in (None, *allowed):
                raise unknown_name(f"{table}.{name}", chosen, allowed)
        if "p" in spec.algorithm.options:
            raise ConfigError("algorithm.p is not a setting of a simulation: DeMoA takes it from sampling.p")
        self.partition: Partition = _make("partition", Partition, PARTITIONS, spec.task.partition)
        self.sampling: Sampling = _make("sampling", Sampling, SAMPLINGS, spec.sampling)
        self.algorithm: Algorithm = _make("algorithm", Algorithm, ALGORITHMS, spec.algorithm)
        self.rule: Rule = _make("rule", Rule, RULES, spec.aggregation.rule, RULE_ALIASES)
        self.mixing: list[Mixing] = [_make("mixing", Mixing, MIXINGS, step) for step in spec.aggregation.mixing]
        self.store: StoreKind = _make("store", StoreKind, STORES, spec.aggregation.store)
        self.attack: Attack = _make("attack", Attack, ATTACKS, spec.attack, ATTACK_ALIASES)

    def server(self, spec: Spec, parameters: Any) -> Server:
        """Return the server, which refuses parts that do not fit each other or the number of clients."""
        n, f = spec.clients.n, spec.aggregation.f
        self.sampling.probability(1, n)
        return Server(
            parameters,
            n,
            f=spec.clients.byzantine if f is None else f,
            rule=self.rule,
            mixing=self.mixing,
            algorithm=self.algorithm,
            lr=spec.run.lr,
            store=self.store,
            sketch=spec.aggregation.sketch,
            seed=spec.seed("mixing"),
        )

    def resolved(self, spec: Spec) -> dict[str, Any]:
        """Return the whole spec as plain data, with the options of every variant."""
        table = asdict(spec)
        mixing = zip(spec.aggregation.mixing, self.mixing, strict=True)
        table["task"]["dataset"] = _with_defaults(spec.task.dataset, DATASETS, skip=0)
        table["task"]["model"] = _with_defaults(spec.task.model, MODELS, skip=3)
        table["task"]["partition"] = _named(spec.task.partition, self.partition)
        table["sampling"] = _named(spec.sampling, self.sampling)
        table["algorithm"] = _named(spec.algorithm, self.algorithm)
        table["aggregation"]["rule"] = _named(spec.aggregation.rule, self.rule)
        table["aggregation"]["mixing"] = [_named(variant, step) for variant, step in mixing]
        table["aggregation"]["store"] = _named(spec.aggregation.store, self.store)
        table["attack"] = _named(spec.attack, self.attack)
        table["algorithm"].pop("p", None)  # that of the sampling
        for part, name, (default, *_) in CHOICES:
            if table[part][name] == default:  # said or not, it is the same run
                table[part][name] = None
        return _without_none(table)


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    """Leave out options that are not set, as TOML would: they keep their default when the spec is read again."""
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


def _named(variant: Variant, made: Any) -> dict[str, Any]:
    """Return a variant with every option, under the name by which it is looked up."""
    return describe(made) | {"name": {**RULE_ALIASES, **ATTACK_ALIASES}.get(variant.name, variant.name)}


def _make(kind: str, base: Any, family: Any, variant: Variant, aliases: Any = None) -> Any:
    name = (aliases or {}).get(variant.name, variant.name)
    return build(kind, base, family, name, **variant.options)


def _with_defaults(variant: Variant, family: Mapping[str, Callable[..., Any]], skip: int) -> dict[str, Any]:
    """Return a variant that a function makes, with every option after the first few arguments."""
    made: dict[str, Any] = {"name": variant.name}
    if variant.name in family:
        options = list(inspect.signature(family[variant.name]).parameters.values())[skip:]
        made |= {option.name: option.default for option in options}
    return made | variant.options


def _dataset(spec: Spec, device: torch.device, loaded: Loaded) -> Dataset:
    variant = spec.task.dataset
    draws = is_import_path(variant.name)  # data of one's own may draw from torch; all other data is what it is
    key = repr((variant, spec.seed("data") if draws else None, device))
    if key not in loaded:
        with seeded_torch(spec.seed("data"), "dataset"):  # for data of one's own that draws from torch
            loaded[key] = load_dataset(variant.name, variant.options).to(device)
    return loaded[key]


def _check_fit(spec: Spec, module: nn.Module, dataset: Dataset) -> None:
    """Raise ConfigError unless the model can be applied to the data set, and keeps nothing of what it has seen."""
    what = f"model {spec.task.model.name}"
    if any(getattr(part, "track_running_stats", False) for part in module.modules()):
        raise ConfigError(f"{what} keeps running statistics, which no server holds; use track_running_stats=False")
    try:
        module.eval()
        with torch.no_grad():
            shape = tuple(module(dataset.train.batch(np.arange(2))[0]).shape)
    except Exception as error:  # whatever a module of the user's own may raise
        reason = first_line(error)
        raise ConfigError(f"{what} does not fit the data set {spec.task.dataset.name}: {reason}") from error
    wanted = (2, dataset.classes if dataset.objective == "label" else 1)
    if shape != wanted:
        raise ConfigError(f"{what} must return {wanted} for two examples of {spec.task.dataset.name}, got {shape}")


def _model_factory(variant: Variant) -> Callable[..., nn.Module]:
    if is_import_path(variant.name):
        return cast(Callable[..., nn.Module], imported("model", variant.name))
    if variant.name not in MODELS:
        raise unknown_name("model", variant.name, [*MODELS, "package.module:Class"])
    make = MODELS[variant.name]
    known = list(inspect.signature(make).parameters)[3:]
    for option in variant.options:
        if option not in known:
            raise unknown_name(f"option of model {variant.name}", option, known or ["(it has none)"])
    return make


def _model(variant: Variant, dataset: Dataset, seed: int) -> nn.Module:
    make = _model_factory(variant)
    try:
        with seeded_torch(seed, "model"):
            made = make(dataset.channels, dataset.size, dataset.classes, **variant.options)
    except TypeError as error:
        raise ConfigError(f"model {variant.name} must take (channels, size, classes, options): {error}") from error
    if not isinstance(made, nn.Module):
        raise ConfigError(f"model {variant.name} must make a torch.nn.Module, got {type(made).__name__}")
    return made


def _shards(
    spec: Spec, dataset: Dataset, partition: Partition
) -> tuple[NDArray[np.intp], tuple[NDArray[np.intp], ...]]:
    """Return the validation examples, and each client's: an IID draw for the Byzantine ones, who come first."""
    seed, clients = spec.seed("data"), spec.clients
    order = generator(seed, "validation").permutation(len(dataset.train))
    cut = round(dataset.held_out * len(order))
    held_out, training = order[:cut], np.sort(order[cut:])
    labels = dataset.train.labels.cpu().numpy()[training]
    honest = partition.shards(labels, clients.n - clients.byzantine, generator(seed, "partition"))
    size = len(training) // (clients.n - clients.byzantine)
    draws = generator(seed, "byzantine data")
    liars = [draws.choice(len(training), size, replace=False) for _ in range(clients.byzantine)]
    # A problem that is known exactly holds nothing out: it is tuned on what it is.
    return (held_out if cut else training), tuple(training[shard] for shard in [*liars, *honest])
