"""DeMoA or FedAvg over the same clients, and what the server's process used."""

import resource
import time

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from demoa.flower import DelayedMomentumStrategy
from demoa.flower.client import parameters_of
from demoa.sampling import Bernoulli
from flower_cost.client import network

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Play the rounds, and print when each of them ended, and the peak memory."""
    config = context.run_config
    clients = int(config["clients"])
    strategy: Strategy
    if config["strategy"] == "fedavg":
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)
    else:
        folder = str(config["folder"]) or None
        strategy = DelayedMomentumStrategy(f=1, clients=clients, sampling=Bernoulli(1.0), folder=folder)

    def note(number: int, arrays: ArrayRecord) -> None:
        print(f"round {number} at {time.monotonic():.3f}", flush=True)

    start = parameters_of(network(str(config["model"])))
    strategy.start(grid, start, num_rounds=int(config["rounds"]), timeout=600, evaluate_fn=note)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}", flush=True)
