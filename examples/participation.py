"""What a wrong p does: half of the clients answer one question in four, and DeMoA's decay knows, learns, or neither.

DeMoA lets a row decay by 1 - alpha p, so that on average it is as long as the client's gradient. A client that answers
with probability q in place of p has a row of q / p times that length: the server hears it too quietly, with any rule.

    python examples/participation.py [--rounds 400]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch

from demoa.core.seeding import generator
from demoa.core.torch_threads import use_threads
from demoa.experiment.build import Experiment, make_experiment
from demoa.experiment.load import read_spec
from demoa.metrics import evaluate
from demoa.server.participation import Participation

N, P, ANSWERS = 20, 0.4, 0.25
SETTINGS = [
    "task.partition=by_label",
    f"clients.n={N}",
    "clients.byzantine=0",
    "attack.name=none",
    "aggregation.rule=mean",
    f"sampling.p={P}",
    "run.lr=0.05",
]
KINDS = {"told nothing: p = 0.4 for all": "nominal", "learns p_i": "learned", "told p_i": "true"}


def play(kind: str, rounds: int, seed: int) -> tuple[float, float]:
    """Return the accuracy at the end, and how long the rows of the unreliable clients are beside the others'."""
    experiment = make_experiment(read_spec(None, [*SETTINGS, f"run.seed={seed}"]))
    server, worker = experiment.federation.server, experiment.federation.worker
    answers = np.where(np.arange(N) % 2 == 0, ANSWERS, 1.0)  # every other client is unreliable
    seen = Participation(server.clients)
    for number in range(1, rounds + 1):
        draw = generator(seed, "answers", number)
        asked = np.flatnonzero(draw.random(N) < P) if number > 1 else np.arange(N)
        p: Any = {"nominal": P, "true": P * answers, "learned": seen.estimate(server.clients, P)}[kind]
        task = server.begin_round(asked.tolist(), p=p if number > 1 else None)
        came = [client for client in task.asked if number == 1 or draw.random() < answers[int(client)]]
        for client in came:
            server.submit(client, worker.update(int(client), number, task.parameters).vector)
        server.end_round()
        seen.note(task.asked if number > 1 else (), came if number > 1 else ())
    return accuracy(experiment), _lengths(experiment, rounds)


def accuracy(experiment: Experiment) -> float:
    """Return the accuracy on the test set."""
    model, dataset = experiment.federation.worker.model, experiment.dataset
    model.set_parameters(torch.as_tensor(experiment.federation.server.parameters))
    return float(evaluate(model.module, dataset, dataset.test, np.arange(len(dataset.test))).accuracy or 0.0)


def _lengths(experiment: Experiment, rounds: int) -> float:
    """Return the mean of |row| / |gradient at the end| over unreliable clients, beside that over the others."""
    server, worker = experiment.federation.server, experiment.federation.worker
    ratios = [
        float(
            torch.as_tensor(server.momentum_of(client))
            @ (vector := worker.update(client, rounds + 1, server.parameters).vector)
        )
        / float(vector @ vector)
        for client in range(N)
    ]
    return float(np.mean(ratios[::2]) / np.mean(ratios[1::2]))


def main() -> None:
    """Print a line per kind of decay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    use_threads(1)
    print(
        f"{N} clients, p = {P}; every other one answers {ANSWERS:.0%} of its questions; mean over {chosen.seeds} seeds"
    )
    print(f"{'decay':<32} accuracy   rows of the unreliable, beside the others'")
    for name, kind in KINDS.items():
        found = np.array([play(kind, chosen.rounds, seed) for seed in range(chosen.seeds)])
        print(f"{name:<32} {found[:, 0].mean():8.1%}   {found[:, 1].mean():.2f}")


if __name__ == "__main__":
    main()
