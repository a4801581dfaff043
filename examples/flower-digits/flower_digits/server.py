"""The server: DeMoA over all clients, whoever answers."""

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

import demoa
from demoa.flower import DelayedMomentumStrategy
from demoa.flower.client import load_parameters, parameters_of
from demoa.sampling import Bernoulli
from flower_digits.task import accuracy, network

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and print what the audit says of each client."""
    config = context.run_config
    rule = str(config["rule"])
    strategy = DelayedMomentumStrategy(
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

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        model = network()
        load_parameters(model, arrays)
        found = accuracy(model)
        print(f"round {number}: accuracy {found:.1%}", flush=True)
        return MetricRecord({"accuracy": found})

    torch.manual_seed(int(config["seed"]))
    start = parameters_of(network())
    rounds, timeout = int(config["rounds"]), float(config["timeout"])
    strategy.start(grid, start, num_rounds=rounds, timeout=timeout, evaluate_fn=evaluate)
    print("client            suspicion  asked  answered  cosine  refused")
    for row in strategy.audit.table():
        cosine = "      " if row["cosine"] is None else f"{row['cosine']:6.2f}"
        print(
            f"{row['client']!s:<17} {row['suspicion']:9.2f}  {row['asked']:5}  {row['answered']:8}  {cosine}  ", end=""
        )
        print(", ".join(f"{reason} {count}" for reason, count in row["refused"].items()), flush=True)
