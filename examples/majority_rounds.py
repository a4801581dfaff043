"""Three servers, one stream of clients: what a Byzantine-majority round does to each.

25 clients minimise sum_i |x - a_i|^2 / 2 over 20 honest clients; 5 lie. Each round only about one client in ten
answers, so now and then most of those who do are liars. All three servers use the same robust rule, the
coordinate-wise median, and hear the same clients; the liars send what hurts each server most in a round that they
own, and lie low otherwise.

Run it with `scripts/demo`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import demoa

N, F, D, P = 25, 5, 1000, 0.1
HONEST = range(F, N)
BARS = " ▁▂▃▄▅▆▇█"


@dataclass
class Contestant:
    """A server, what it is, and how far it was from the solution after each round."""

    label: str
    server: demoa.Server
    distances: list[float] = field(default_factory=list)


def contestants(lr: float) -> list[Contestant]:
    """Return the servers that are compared."""
    known = [
        ("DeMoA: median of all 25 cached rows", demoa.algorithms.Demoa(alpha=0.9, p=P)),
        ("FedAvg: median of those who answered", demoa.algorithms.FedAvg()),
        ("FedCM: the same, with local momentum", demoa.algorithms.FedCM(alpha=0.9)),
    ]
    return [
        Contestant(label, demoa.Server(np.zeros(D), N, f=F, rule="median", algorithm=algorithm, lr=lr))
        for label, algorithm in known
    ]


def play(rounds: int, seed: int) -> tuple[list[Contestant], list[int]]:
    """Run all servers side by side; return them and the rounds in which most of the answers were lies."""
    random = np.random.default_rng(seed)
    targets = 1.0 + 0.5 * random.standard_normal((N, D))
    solution = targets[F:].mean(axis=0)
    players = contestants(lr=0.1)
    majority: list[int] = []
    for number in range(1, rounds + 1):
        asked = range(N) if number == 1 else np.flatnonzero(random.random(N) < P).tolist()
        liars = sum(client < F for client in asked)
        owned = liars > len(asked) - liars
        if owned:
            majority.append(number)
        noise = 0.5 * random.standard_normal((N, D))
        for player in players:
            parameters = player.server.parameters
            player.server.begin_round(asked)
            for client in asked:
                gradient = parameters - targets[client] + noise[client]
                player.server.submit(client, lie(parameters, solution) if client < F and owned else gradient)
            player.distances.append(float(np.linalg.norm(player.server.end_round().parameters - solution)))
    return players, majority


def lie(parameters: NDArray[np.float64], solution: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a gradient that points straight away from the solution, thirty times as long as an honest one."""
    away = parameters - solution
    return np.asarray(-30.0 * np.sqrt(D) * away / np.linalg.norm(away))


def curve(distances: list[float], width: int, top: float) -> str:
    """Return the distances as a line of bars, the worst of each stretch of rounds."""
    stretches = np.array_split(np.array(distances), width)
    heights = [min(1.0, float(stretch.max()) / top) for stretch in stretches]
    return "".join(BARS[round(height * (len(BARS) - 1))] for height in heights)


def main() -> None:
    """Play, and print the result."""
    parser = argparse.ArgumentParser(description="DeMoA beside servers that look at one round only.")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {options.rounds}")
    players, majority = play(options.rounds, options.seed)
    width = min(75, options.rounds)
    top = max(player.distances[0] for player in players) * 2
    marks = [" "] * width
    for number in majority:
        marks[(number - 1) * width // options.rounds] = "!"
    print(f"{N} clients, {F} of them lie, each answers with probability {P}; {options.rounds} rounds.")
    print(f"In {len(majority)} rounds most answers were lies: marked with ! below.\n")
    print("Distance to the solution, round by round (lower is better):\n")
    for player in players:
        print(f"  {player.label}\n  |{curve(player.distances, width, top)}|\n  |{''.join(marks)}|")
        print(f"   worst after round 50: {max(player.distances[50:] or player.distances):8.2f}   ", end="")
        print(f"at the end: {player.distances[-1]:8.2f}\n")
    if majority:
        print("A rule that sees one round cannot tell who lies when most of that round lies.")
        print("DeMoA's server keeps a decaying row per client, so that the liars stay 5 of 25 in every round.")


if __name__ == "__main__":
    main()
