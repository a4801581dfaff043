"""What a round of a server costs as clients become many, and what it takes.

    python benchmarks/scale.py growth     round time at n = 25, 250, 2,500 clients of which 10 answer, for each rule
    python benchmarks/scale.py large      n = 10,000 clients of 1,199,882 parameters, 100 a round: int8 in memory, and
                                          float32 in files (50 GB); rounds per minute and peak memory
    ... --toy                             small, in seconds

A round is begin_round, the answers that are submitted, and end_round. Its time is the least of several, its growth a
ratio within one run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import demoa
from demoa.aggregation.rules import RULES
from demoa.aggregation.stores import Int8, Memmap, StoreKind

GROWTH_RULES = ["mean", "centered_clip", "krum", "multi_krum", "geometric_median", "median", "trimmed_mean", "meamed"]
CHEAP = ("mean", "centered_clip", "krum")
"""The rules whose cost should follow the clients that answer."""


class Rounds:
    """A server of many clients, of which some answer each round with vectors that were drawn before."""

    def __init__(
        self, clients: int, width: int, answers: int, rule: str, store: str | StoreKind = "dense", full: bool = True
    ) -> None:
        f = RULES[rule]().tolerance(clients) and clients // 5
        algorithm = demoa.algorithms.Demoa(p=answers / clients, full_first_round=False)
        start = np.zeros(width, np.float32)
        self.server = demoa.Server(start, clients, f=f, rule=rule, algorithm=algorithm, lr=1e-3, store=store)
        self._draw = np.random.default_rng(0)
        drawn = np.random.default_rng(1)
        self._vectors = [drawn.standard_normal(width, dtype=np.float32) / np.float32(np.sqrt(width)) for _ in range(16)]
        self._answers, self._clients = answers, clients
        if full:
            self.play(range(clients))  # so that no row is zero

    def play(self, asked: Any = None) -> None:
        """Play a round."""
        if asked is None:
            asked = self._draw.choice(self._clients, self._answers, replace=False).tolist()
        task = self.server.begin_round(asked)
        for place, client in enumerate(task.asked):
            self.server.submit(client, self._vectors[(place + task.number) % len(self._vectors)])
        self.server.end_round()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["growth", "large"])
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--rules", nargs="*", help="which rules, for growth")
    chosen = parser.parse_args()
    if chosen.what == "growth":
        growth(chosen.rules or GROWTH_RULES, chosen.toy)
    else:
        large(chosen.toy)


def growth(rules: list[str], toy: bool) -> None:
    width, sizes, repeats = (5_000, [25, 150], 3) if toy else (119_988, [25, 250, 2500], 15)
    answers = 10
    print(f"d = {width:,}, float32, {answers} answers a round; milliseconds of a round, the least of {repeats}")
    print(f"{'rule':<20}" + "".join(f"{f'n = {n}':>12}" for n in sizes) + f"{'growth':>12}{'n grows':>10}")
    for rule in rules:
        players = [Rounds(n, width, answers, rule) for n in sizes]
        times: list[list[float]] = [[] for _ in sizes]
        for _ in range(repeats):  # taking turns, as other tenants of the machine come and go
            for player, taken in zip(players, times, strict=True):
                player.play()
                begun = time.perf_counter()
                player.play()
                taken.append(1e3 * (time.perf_counter() - begun))
        least = [min(taken) for taken in times]
        line = f"{rule:<20}" + "".join(f"{one:12.2f}" for one in least)
        print(line + f"{least[-1] / least[0]:10.1f} x{sizes[-1] / sizes[0]:8.0f} x", flush=True)


def large(toy: bool) -> None:
    clients, width, answers = (200, 20_000, 10) if toy else (10_000, 1_199_882, 100)
    print(f"n = {clients:,}, d = {width:,}, {answers} answers a round")
    print(f"{'store':<12} {'rule':<16} {'rows take':>16} {'rounds a minute':>16} {'peak memory':>12}")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        for name in ("int8", "memmap"):
            for rule in ("centered_clip", "krum"):
                context = multiprocessing.get_context("spawn")  # a process each, for its own peak of memory
                arguments = (name, rule, clients, width, answers, str(Path(place) / f"{name}-{rule}"), toy)
                with context.Pool(1) as pool:
                    taken, rounds, peak, size = pool.apply(_large, arguments)
                rate = 60 * rounds / taken
                print(f"{name:<12} {rule:<16} {size / 1e9:13.1f} GB {rate:16.1f} {peak / 1e9:9.1f} GB", flush=True)


def _large(
    name: str, rule: str, clients: int, width: int, answers: int, folder: str, toy: bool
) -> tuple[float, int, int, int]:
    kind: StoreKind = Int8() if name == "int8" else Memmap(folder)
    player = Rounds(clients, width, answers, rule, kind, full=False)
    # Rows of clients that were never asked are zero and cost nothing: all are asked first, some at a time.
    server = player.server
    # With a table of all rows, filling them takes as long as asking them.
    first = 1 if rule == "krum" else clients // answers
    for start in range(0, first * answers, answers):
        player.play(range(start, start + answers))
    begun, rounds = time.perf_counter(), 0
    while time.perf_counter() - begun < (0.5 if toy else 60.0) or rounds < 2:
        player.play()
        rounds += 1
    taken = time.perf_counter() - begun
    size = sum(server.store.size(clients, width, 4))
    return taken, rounds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, size


if __name__ == "__main__":
    main()
