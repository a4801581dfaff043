"""Everyone is asked in every round, and the median of all rows is what counts."""

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from demoa.flower.strategy import DelayedMomentumStrategy
from demoa.sampling import Bernoulli

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    strategy = DelayedMomentumStrategy(
        f=int(config["faulty"]),
        clients=int(config["clients"]),
        rule="median",
        lr=0.5,
        sampling=Bernoulli(1.0),
        folder=str(config["folder"]),
        silent_rounds=int(config["silent-rounds"]),
    )
    start = ArrayRecord({"x": Array(np.zeros(6, np.float32))})
    strategy.start(grid, start, num_rounds=int(config["rounds"]), timeout=float(config["timeout"]))
    print("parameters", strategy.server.parameters.tobytes().hex(), flush=True)
