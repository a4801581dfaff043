"""The server: DeMoA over all clients, whoever answers."""

from typing import Any

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedMedian, Krum, Strategy

import demoa
from demoa.flower import DelayedMomentumStrategy
from demoa.flower.client import load_arrays, parameters_of
from demoa.sampling import Bernoulli
from flower_digits.task import accuracy, network

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and print what the audit says of each client."""
    config = context.run_config
    torch.manual_seed(int(config["seed"]))
    start = parameters_of(network())
    rounds, timeout = int(config["rounds"]), float(config["timeout"])
    strategy = flowers_own(config) or demoas(config)
    strategy.start(grid, start, num_rounds=rounds, timeout=timeout, evaluate_fn=evaluate)
    if isinstance(strategy, DelayedMomentumStrategy):
        print_audit(strategy)


def demoas(config: Any) -> DelayedMomentumStrategy:
    """Return the strategy that the run's configuration describes."""
    rule = str(config["rule"])
    return DelayedMomentumStrategy(
        f=int(config["faulty"]),
        clients=int(config["clients"]),
        rule=demoa.rules.CenteredClip(tau=float(config["tau"])) if rule == "centered_clip" else rule,
        algorithm=str(config["algorithm"]),
        lr=float(config["lr"]),
        sampling=Bernoulli(float(config["p"])),
        seed=int(config["seed"]),
        folder=str(config["folder"]) or None,
        identity=str(config["identity"]),
        silent_rounds=int(config["silent-rounds"]),
    )


def flowers_own(config: Any) -> Strategy | None:
    """Return a strategy of Flower's own, for comparison."""
    clients = int(config["clients"])
    options: dict[str, Any] = {
        "fraction_train": float(config["p"]),
        "min_available_nodes": clients,
        "fraction_evaluate": 0.0,
    }
    if config["strategy"] == "fedmedian":
        return FedMedian(**options)
    if config["strategy"] == "krum":
        return Krum(**options, num_malicious_nodes=1)
    return None


def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
    """Print how good the model is on the test set."""
    model = network()
    load_arrays(model, arrays)
    found = accuracy(model)
    print(f"round {number}: accuracy {found:.1%}", flush=True)
    return MetricRecord({"accuracy": found})


def print_audit(strategy: DelayedMomentumStrategy) -> None:
    """Print what is known of each client, the most suspicious first."""
    print("client            suspicion  asked  answered  cosine  refused")
    for row in strategy.audit.table():
        cosine = "      " if row["cosine"] is None else f"{row['cosine']:6.2f}"
        refused = ", ".join(f"{reason} {count}" for reason, count in row["refused"].items())
        counts = f"{row['suspicion']:9.2f}  {row['asked']:5}  {row['answered']:8}"
        print(f"{row['client']!s:<17} {counts}  {cosine}  {refused}", flush=True)
