"""Real deployments on this machine, with TLS and keys, beside Flower's own strategies.

    python benchmarks/deployment.py faults    ten clients, of which three send NaN, wrong shapes and flipped signs:
                                              DeMoA, FedMedian, Krum, and the simulator without those faults
    python benchmarks/deployment.py cost      ResNet-18 on four clients: time and memory of a round, beside FedAvg
    ... --toy                                 few clients, small models, a minute

`faults` takes the last accuracy that a run came to. `cost` lets DeMoA and FedAvg take turns, takes the least time of a
round of each, and the peak resident memory of the server's process.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from demoa.core.torch_threads import use_threads
from demoa.experiment.build import make_experiment
from demoa.experiment.load import read_spec
from demoa.experiment.run import start_run
from demoa.flower.local import LocalDeployment
from demoa.results.folder import RunFolder

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "examples" / "flower-digits"
COST = ROOT / "benchmarks" / "flower-cost"
ATTACKS = "nan wrong_shape bit_flip"


class Ended(NamedTuple):
    """How a run ended: its last round, the accuracy there, and the error that stopped it, if one did."""

    round: int
    accuracy: float
    error: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["faults", "cost"])
    parser.add_argument("--toy", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        {"faults": faults, "cost": cost}[chosen.what](Path(place), chosen.toy)


def faults(place: Path, toy: bool) -> None:
    clients, rounds = (4, 3) if toy else (10, 40)
    attacks = "nan" if toy else ATTACKS
    settings = {"clients": clients, "faulty": len(attacks.split()), "attacks": attacks, "rounds": rounds, "p": 0.3}
    simulated = in_simulator(place / "simulated", settings)
    print(f"{clients} clients, p = 0.3, {rounds} rounds of digits; these attack: {attacks}")
    print(f"{'in the simulator, without faults':<36} {simulated:6.1%}", flush=True)
    with deployed(place / "deploy", clients) as deployment:
        for name in ("demoa", "fedmedian", "krum"):
            config = {**settings, "strategy": name, "identity": "key", "timeout": 60.0}
            ended = last_accuracy(deployment.run(DIGITS, config))
            away = f"{100 * (ended.accuracy - simulated):+.1f} points"
            error = f"; it ended in {ended.error}" if ended.error else ""
            print(
                f"{name + ', deployed':<36} {ended.accuracy:6.1%} ({away}) after round {ended.round}{error}", flush=True
            )


def in_simulator(folder: Path, settings: dict[str, Any]) -> float:
    """Return the accuracy of the same federation, in this process, with all clients honest."""
    use_threads(1)
    spec = read_spec(
        None,
        [
            f"clients.n={settings['clients']}",
            "clients.byzantine=0",
            "attack.name=none",
            f"aggregation.f={settings['faulty']}",
            "aggregation.rule.name=centered_clip",
            "aggregation.rule.tau=0.5",
            f"sampling.p={settings['p']}",
            "run.lr=0.5",
            f"run.rounds={settings['rounds']}",
        ],
    )
    final = start_run(make_experiment(spec), RunFolder(folder), lambda record: None)
    return float(final["test_accuracy"])


def deployed(folder: Path, clients: int) -> Any:
    """Return a deployment whose clients are started when it is entered."""

    class Deployment(LocalDeployment):
        def __enter__(self) -> LocalDeployment:
            super().__enter__()
            for client in range(clients):
                self.add_client(f"client{client}", client)
            return self

    return Deployment(folder, database=False)


def last_accuracy(lines: Iterable[str]) -> Ended:
    """Return how a run of the digits ended, by what it printed."""
    number, accuracy, error = 0, 0.0, ""
    for line in lines:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        if found := re.match(r"round (\d+): accuracy ([\d.]+)%", plain):
            number, accuracy = int(found[1]), float(found[2]) / 100
        elif found := re.search(r"([\w.]*(?:Error|Exception|Inconsistent\w+))\b", plain):
            error = found[1].rpartition(".")[2]
    return Ended(number, accuracy, error)


def cost(place: Path, toy: bool) -> None:
    clients, rounds, model, turns = (3, 2, "mlp", 1) if toy else (4, 6, "resnet18", 2)
    times: dict[str, list[float]] = {}
    peaks: dict[str, list[int]] = {}
    with deployed(place / "deploy", clients) as deployment:
        for turn in range(turns):
            for name in ("fedavg", "demoa", "demoa, saved after each round"):
                folder = str(place / f"state{turn}") if "saved" in name else ""
                config = {"clients": clients, "rounds": rounds, "model": model, "folder": folder}
                lines = list(deployment.run(COST, {**config, "strategy": name.partition(",")[0]}))
                ends = [float(line.split()[-1]) for line in lines if re.match(r"round \d+ at", line)]
                # The first rounds warm up: clients import, the server compiles.
                times.setdefault(name, []).extend(end - begun for begun, end in pairwise(ends[1:]))
                peaks.setdefault(name, []).extend(int(line.split()[1]) for line in lines if line.startswith("peak "))
    print(f"{model} on {clients} clients that all answer; {turns} runs of {rounds} rounds each, taking turns")
    print(f"{'strategy':<32} {'a round, at best':>18} {'median':>10} {'peak memory of the server':>28}")
    least, lowest = min(times["fedavg"]), min(peaks["fedavg"])
    for name, taken in times.items():
        middle = sorted(taken)[len(taken) // 2]
        peak = min(peaks[name])
        at_best = f"{min(taken):6.2f} s ({min(taken) / least:.2f} x)"
        print(f"{name:<32} {at_best:>18} {middle:8.2f} s {peak / 1024:15.0f} MB ({peak / lowest:.2f} x)")


if __name__ == "__main__":
    main()
