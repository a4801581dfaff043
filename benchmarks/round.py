"""One whole simulated round, beside the same round built on ByzFL, on epfml's loop and on pfl, in one run.

    scripts/benchmark round               MNIST (fetch it first: demoa data fetch mnist), about five minutes
    python benchmarks/round.py --toy      the same code on random images, for CI

Ours is all of a DeMoA round: batches, gradients, gate, rows, table, rule, step, and the record's figures. A peer's
round does the same work in its own way: ByzFL's Client and rules on an (n, d) tensor of momentum rows that decays
each round; epfml's loop, a DataLoader and a model per client, one after another, and its Krum; pfl's plain averaging,
which is not robust. Times are the best of several, in milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

import demoa
from demoa.core.examples import Dataset, Examples
from demoa.core.seeding import generator
from demoa.experiment.build import Experiment, make_experiment
from demoa.experiment.load import read_spec
from timing import best, has_byzfl

N, F, BATCH = 25, 5, 32
ALPHA, P, LR = 0.9, 0.1, 0.1
TURNS = 4
RULES = ("centered_clip", "krum", "geometric_median", "median")


class UsualConvNet(nn.Sequential):
    """The same network as anyone would write it in torch, for the peers."""

    def __init__(self) -> None:
        super().__init__(
            *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25)),
            *(nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)),
        )


def small_images() -> Dataset:
    """Return random images in place of MNIST, to see that the code runs."""
    draw = generator(0, "small images")

    def part(count: int) -> Examples:
        images = torch.from_numpy(draw.integers(0, 255, (count, 1, 28, 28), dtype=np.uint8))
        return Examples(images, torch.arange(count) % 10, (0.1307,), (0.3081,))

    return Dataset(part(2000), part(100), classes=10)


def experiment(rule: str, clients: int, dataset: str) -> Experiment:
    """Return our federation, with so many clients in every round and nobody lying, after its full first round."""
    settings = [
        f'task.dataset="{dataset}"',
        "task.model=convnet",
        f"clients.n={N}",
        "clients.byzantine=0",
        f"clients.batch_size={BATCH}",
        f"aggregation.f={F}",
        f"aggregation.rule={rule}",
        "attack.name=none",
        f"algorithm.alpha={ALPHA}",
        "sampling.name=fixed_size",
        f"sampling.size={clients}",
        f"run.lr={LR}",
    ]
    made = make_experiment(read_spec(None, settings))
    made.federation.play()
    return made


def our_gradients(made: Experiment, clients: int) -> Callable[[], object]:
    """Return the gradients of a round alone."""
    worker, start = made.federation.worker, made.federation.adversary.start
    return lambda: [worker.update(client, 2, start) for client in range(clients)]


class Pairs(TorchDataset[Any]):
    """One client's images as torchvision hands them out: one by one, normalised in Python."""

    def __init__(self, examples: Examples, index: Any) -> None:
        self.images, self.labels = examples.images[index], examples.labels[index].tolist()
        self.mean, self.deviation = examples.mean, examples.deviation

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        image = self.images[place].float().div(255)
        mean, deviation = torch.as_tensor(self.mean), torch.as_tensor(self.deviation)
        return image.sub_(mean[:, None, None]).div_(deviation[:, None, None]), self.labels[place]


def loaders(made: Experiment) -> list[DataLoader[Any]]:
    """Return one DataLoader per client, over the same shards as ours."""
    worker = made.federation.worker
    return [DataLoader(Pairs(worker.dataset.train, s), BATCH, shuffle=True, drop_last=True) for s in worker.shards]


def byzfl_round(made: Experiment, rule: str, clients: int) -> Callable[[], object] | None:
    """Return a DeMoA round built on ByzFL's Client and rule."""
    if not has_byzfl():
        return None
    from byzfl.aggregators import aggregators
    from byzfl.fed_framework import Client, models

    models.paper_convnet = UsualConvNet
    settings = {
        "model_name": "paper_convnet",
        "device": "cpu",
        "loss_name": "CrossEntropyLoss",
        "LabelFlipping": False,
        "nb_labels": 10,
        "momentum": 0.0,
        "store_per_client_metrics": False,
    }
    team = [Client({**settings, "training_dataloader": loader}) for loader in loaders(made)[:clients]]
    aggregate = {
        "centered_clip": lambda: aggregators.CenteredClipping(m=None, L=3, tau=10.0),
        "krum": lambda: aggregators.Krum(F),
        "geometric_median": lambda: aggregators.GeometricMedian(nu=0.1, T=8),
        "median": aggregators.Median,
    }[rule]()
    parameters = made.federation.adversary.start.clone()
    rows = 0.01 * torch.randn(N, len(parameters))

    def work() -> object:
        rows.mul_(1 - ALPHA * P)
        for place, client in enumerate(team):
            client.set_parameters(parameters)
            client.compute_gradients()
            rows[place] += ALPHA * client.get_flat_gradients()
        parameters.sub_(aggregate(rows), alpha=LR)
        return parameters

    return work


def epfml_round(made: Experiment) -> Callable[[], object]:
    """Return a round as epfml takes it: every client its own model and loader, and Krum by pairs of vectors."""
    team = [UsualConvNet() for _ in range(N)]
    sources = loaders(made)
    batches: list[Any] = [iter(source) for source in sources]
    momentum: list[list[torch.Tensor]] = [[torch.zeros_like(p) for p in model.parameters()] for model in team]

    def gradient(client: int) -> torch.Tensor:
        try:
            images, labels = next(batches[client])
        except StopIteration:
            batches[client] = iter(sources[client])
            images, labels = next(batches[client])
        model = team[client]
        model.train()
        model.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        for kept, parameter in zip(momentum[client], model.parameters(), strict=True):
            assert parameter.grad is not None
            kept.mul_(0.9).add_(parameter.grad)
        loss.item()
        return torch.cat([kept.view(-1) for kept in momentum[client]])

    def work() -> object:
        vectors = [gradient(client) for client in range(N)]
        squares = torch.zeros(N, N)
        for i in range(N):
            for j in range(i + 1, N):
                squares[i, j] = squares[j, i] = (vectors[i] - vectors[j]).norm() ** 2
        scores = squares.sort(dim=1).values[:, 1 : N - F - 1].sum(dim=1)
        step = vectors[int(scores.argmin())]
        for model in team:
            start = 0
            for parameter in model.parameters():
                stop = start + parameter.numel()
                parameter.data.sub_(step[start:stop].view_as(parameter), alpha=LR)
                start = stop
        return step

    return work


def pfl_round(made: Experiment, clients: int, repeats: int) -> float | None:
    """Return the least time of a plain averaging round of pfl, in milliseconds; it keeps the loop to itself."""
    if importlib.util.find_spec("pfl") is None:
        return None
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset as UserData
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics
    from pfl.model.pytorch import PyTorchModel

    class Net(UsualConvNet):
        """The same network, as pfl wants it."""

        def loss(self, images: torch.Tensor, labels: torch.Tensor, eval: bool = False) -> torch.Tensor:
            return functional.cross_entropy(self(images), labels)

        def metrics(self, images: torch.Tensor, labels: torch.Tensor, eval: bool = True) -> dict[str, Any]:
            return {}

    class Clock(TrainingProcessCallback):  # type: ignore[misc]
        """Writes down when a round ends."""

        def __init__(self) -> None:
            self.ends: list[float] = []

        def after_central_iteration(self, *_: Any, **__: Any) -> tuple[bool, Any]:
            self.ends.append(perf_counter())
            return False, Metrics()

    worker = made.federation.worker
    users = [worker.dataset.train.batch(shard[: 4 * BATCH]) for shard in worker.shards]
    turn = itertools.cycle(range(N))
    data = FederatedDataset(lambda user: UserData(list(users[user])), lambda: next(turn))
    net, clock = Net(), Clock()
    with contextlib.redirect_stdout(io.StringIO()):
        FederatedAveraging().run(
            NNAlgorithmParams(
                central_num_iterations=repeats + 2,
                evaluation_frequency=10**9,
                train_cohort_size=clients,
                val_cohort_size=None,
            ),
            SimulatedBackend(training_data=data, val_data=None),
            PyTorchModel(net, torch.optim.SGD, torch.optim.SGD(net.parameters(), lr=LR)),
            NNTrainHyperParams(
                local_num_epochs=None, local_learning_rate=LR, local_batch_size=BATCH, local_num_steps=1
            ),
            NNEvalHyperParams(local_batch_size=None),
            callbacks=[clock],
        )
    return 1e3 * float(np.diff(clock.ends).min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="toy size, to see that it runs")
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--json", help="write the lines to this file as well")
    options = parser.parse_args()
    torch.set_num_threads(demoa.get_threads())
    dataset = f"{Path(__file__).stem}:small_images" if options.toy else "mnist"
    repeats, turns = (1, 1) if options.toy else (options.repeats, TURNS)
    lines: list[dict[str, Any]] = []

    def show(name: str, clients: int, ours: float, gradients: float, peer: str, theirs: float | None) -> None:
        lines.append({"round": name, "clients": clients, "ours": ours, "gradients": gradients, peer: theirs})
        beside = "" if theirs is None else f"{peer} {theirs:8.1f} ({theirs / ours:4.1f}x)"
        print(f"{name:<18} {clients:>3} {ours:8.1f} {gradients:9.1f} {ours / gradients:8.2f}   {beside}", flush=True)

    print(f"{demoa.get_threads()} threads; MNIST ConvNet, batch {BATCH}, n = {N}; times in ms, best of {repeats}")
    print(f"{'rule':<18} {'k':>3} {'ours':>8} {'gradients':>9} {'of them':>8}   peer")
    for clients in (3,) if options.toy else (2, 3, 12):
        for rule in RULES[:1] if options.toy else RULES:
            made = experiment(rule, clients, dataset)
            works = [made.federation.play, our_gradients(made, clients)]
            peer = byzfl_round(made, rule, clients)
            ours, gradients, *peers = best(repeats, turns, *works, *([] if peer is None else [peer]))
            show(rule, clients, ours, gradients, "ByzFL", peers[0] if peers else None)
            if clients > 2:
                show(rule, clients, ours, gradients, "pfl, plain mean", pfl_round(made, clients, repeats))
    made = experiment("krum", N, dataset)
    ours, gradients, theirs = best(repeats, turns, made.federation.play, our_gradients(made, N), epfml_round(made))
    show("krum, everyone", N, ours, gradients, "epfml", theirs)
    if options.json:
        Path(options.json).write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
