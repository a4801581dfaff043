"""A spec on Flower's simulation engine: the same run as in one process, with clients in actors of their own."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from numpy.typing import NDArray

from demoa.core.errors import ConfigError
from demoa.core.torch_threads import use_threads
from demoa.experiment.build import Experiment, make_experiment, resolve
from demoa.experiment.load import spec_from
from demoa.experiment.spec import Spec
from demoa.flower.strategy import DelayedMomentumStrategy

NAME = "parameters"
"""The one array that is sent: all parameters, in the order of the simulator's vector."""


def simulate(spec: Spec, *, actors: int = 1) -> NDArray[np.floating]:
    """Play a spec on Flower's simulation engine, and return the parameters at the end, (d,).

    Sampling, batches, dropout, attacks, mixings and the server's arithmetic are those of `demoa run`: so are the bits.

    Args:
        spec: What to play.
        actors: How many clients work at the same time.
    """
    found: list[NDArray[np.floating]] = []
    backend: Any = {
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        "init_args": {"num_cpus": actors, "include_dashboard": False},
    }
    run_simulation(
        server_app=_server_app(spec, found),
        client_app=client_app(spec),
        num_supernodes=spec.clients.n,
        backend_config=backend,
    )
    return found[0]


def _server_app(spec: Spec, found: list[NDArray[np.floating]]) -> ServerApp:
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        experiment = make_experiment(spec)
        use_threads(spec.run.threads)
        strategy = strategy_for(experiment)
        start = experiment.federation.adversary.start.cpu().numpy()
        strategy.start(grid, ArrayRecord({NAME: Array(start)}), num_rounds=spec.run.rounds)
        found.append(np.array(strategy.server.parameters))

    return app


def strategy_for(experiment: Experiment) -> DelayedMomentumStrategy:
    """Return the strategy that makes the same rounds as an experiment's federation."""
    federation, spec = experiment.federation, experiment.spec
    server, adversary = federation.server, federation.adversary
    if adversary.attack.flips_labels and adversary.lies_in != "all":
        raise ConfigError(
            f"{spec.attack.name} in {adversary.lies_in} rounds alone: clients on Flower train before it is known who "
            "takes part, so they flip labels in all rounds; use demoa run, or another attack"
        )
    return DelayedMomentumStrategy(
        f=server.aggregator.f,
        clients=spec.clients.n,
        rule=server.aggregator.rule,
        mixing=server.aggregator.mixing,
        algorithm=server.algorithm,
        lr=server.lr,
        sampling=federation.sampling,
        seed=spec.seed("mixing"),
        sampling_seed=spec.seed("sampling"),
        identity="partition",
        adversary=adversary,
        poll=0.05,
    )


def client_app(spec: Spec) -> ClientApp:
    """Return an app that does the work of whichever client of a spec its partition says."""
    text = json.dumps(resolve(spec))
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        federation = _experiment(text).federation
        content: Any = message.content
        client, number = int(context.node_config["partition-id"]), int(content["config"]["server-round"])
        parameters = torch.from_numpy(content["arrays"][NAME].numpy().copy())
        adversary = federation.adversary
        flips = adversary.attack.flips_labels and client < adversary.byzantine
        update = federation.worker.update(client, number, parameters, flip_labels=flips)
        reply: Any = {
            "arrays": ArrayRecord({NAME: Array(update.vector.numpy())}),
            "metrics": MetricRecord({"loss": update.loss, "server-round": number}),
        }
        return Message(RecordDict(reply), reply_to=message)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        said: dict[str, Any] = {"partition-id": context.node_config["partition-id"]}
        return Message(RecordDict({"partition": ConfigRecord(said)}), reply_to=message)

    return app


@cache
def _experiment(text: str) -> Experiment:
    """Return the experiment of a spec, made once per process."""
    experiment = make_experiment(spec_from(json.loads(text)))
    use_threads(experiment.spec.run.threads)
    return experiment
