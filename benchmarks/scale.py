"""What a round of a server costs as clients become many, and what it takes.

    python benchmarks/scale.py growth     round time at n = 25, 250, 2,500 clients of which 10 answer, for each rule
    python benchmarks/scale.py large      n = 10,000 clients of 1,199,882 parameters, 100 a round: int8 in memory, and
                                          float32 in files (50 GB); rounds per minute and peak memory
    python benchmarks/scale.py outlook    what a number of a fresh row, a client and a pair of rows cost, and what that
                                          makes for up to a million clients of up to a billion parameters
    ... --toy                             small, in seconds

A round is begin_round, the answers that are submitted, and end_round. Its time is the least of several, its growth a
ratio within one run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import demoa
from demoa.aggregation.rules import RULES
from demoa.aggregation.stores import Int8, Memmap, StoreKind

SKETCH = 512
"""How many numbers of each row an approximate table is computed from."""

RULES_ASKED = {
    "mean": ("mean", None),
    "centered_clip": ("centered_clip", None),
    "krum": ("krum", None),
    "krum, sketch": ("krum", SKETCH),
    "multi_krum": ("multi_krum", None),
    "multi_krum, sketch": ("multi_krum", SKETCH),
    "geometric_median": ("geometric_median", None),
    "median": ("median", None),
    "trimmed_mean": ("trimmed_mean", None),
    "meamed": ("meamed", None),
}
"""What is measured, by what it is called: a rule, and the size of the sketches that its table comes from."""


LARGE_STORES = ("int8", "memmap")
LARGE_RULES = ("centered_clip", "krum, sketch", "krum")


class Rounds:
    """A server of many clients, of which some answer each round with vectors that were drawn before."""

    def __init__(
        self,
        clients: int,
        width: int,
        answers: int,
        rule: str,
        sketch: int | None = None,
        store: str | StoreKind = "dense",
    ) -> None:
        f = RULES[rule]().tolerance(clients) and clients // 5
        algorithm = demoa.algorithms.Demoa(p=answers / clients, full_first_round=False)
        start = np.zeros(width, np.float32)
        self.server = demoa.Server(
            start, clients, f=f, rule=rule, algorithm=algorithm, lr=1e-3, store=store, sketch=sketch
        )
        self._draw = np.random.default_rng(0)
        drawn = np.random.default_rng(1)
        self._vectors = [drawn.standard_normal(width, dtype=np.float32) / np.float32(np.sqrt(width)) for _ in range(16)]
        self._answers, self._clients = answers, clients

    def play(self, asked: Any = None) -> float:
        """Play a round, and return the seconds that the server took."""
        if asked is None:
            asked = self._draw.choice(self._clients, self._answers, replace=False).tolist()
        begun = time.perf_counter()
        task = self.server.begin_round(asked)
        taken = time.perf_counter() - begun
        for client in task.asked:
            vector = self._vector()
            begun = time.perf_counter()
            self.server.submit(client, vector)
            taken += time.perf_counter() - begun
        begun = time.perf_counter()
        self.server.end_round()
        return taken + time.perf_counter() - begun

    def write(self, client: int) -> None:
        """Write a client's row past the server, whose table then takes it for a row of zeros."""
        self.server._state.cache.store.blend(client, 0.0, 1.0, self._vector())

    def _vector(self) -> Any:
        """Return a vector that no other client sends, at little cost: a random turn between two that were drawn."""
        one, other = self._draw.choice(len(self._vectors), 2, replace=False)
        angle = self._draw.uniform(0, 2 * np.pi)
        return np.float32(np.cos(angle)) * self._vectors[one] + np.float32(np.sin(angle)) * self._vectors[other]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["growth", "large", "outlook"])
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--rules", nargs="*", choices=RULES_ASKED, help="which; all if not given")
    parser.add_argument("--stores", nargs="*", default=LARGE_STORES, choices=LARGE_STORES, help="which, for large")
    chosen = parser.parse_args()
    if chosen.what == "growth":
        growth(chosen.rules or RULES_ASKED, chosen.toy)
    elif chosen.what == "large":
        large(chosen.stores, chosen.rules or LARGE_RULES, chosen.toy)
    else:
        outlook(chosen.toy)


def growth(rules: Iterable[str], toy: bool) -> None:
    width, sizes, repeats = (5_000, [25, 150], 3) if toy else (119_988, [25, 250, 2500], 15)
    answers = 10
    print(f"d = {width:,}, float32, {answers} answers a round; milliseconds of a round, the least of {repeats}")
    print(f"{'rule':<20}" + "".join(f"{f'n = {n}':>12}" for n in sizes) + f"{'growth':>12}{'n grows':>10}")
    for rule in rules:
        players = [Rounds(n, width, answers, *RULES_ASKED[rule]) for n in sizes]
        for player, n in zip(players, sizes, strict=True):
            player.play(range(n))  # so that no row is zero
        times: list[list[float]] = [[] for _ in sizes]
        for _ in range(repeats):  # taking turns, as other tenants of the machine come and go
            for player, taken in zip(players, times, strict=True):
                player.play()
                taken.append(1e3 * player.play())
        least = [min(taken) for taken in times]
        line = f"{rule:<20}" + "".join(f"{one:12.2f}" for one in least)
        print(line + f"{least[-1] / least[0]:10.1f} x{sizes[-1] / sizes[0]:8.0f} x", flush=True)


def large(stores: Iterable[str], rules: Iterable[str], toy: bool) -> None:
    clients, width, answers = (200, 20_000, 10) if toy else (10_000, 1_199_882, 100)
    print(f"n = {clients:,}, d = {width:,}, {answers} answers a round")
    print(f"{'store':<12} {'rule':<16} {'rows take':>16} {'rounds a minute':>16} {'peak memory':>12}")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        for name in stores:
            for rule in rules:
                context = multiprocessing.get_context("spawn")  # a process each, for its own peak of memory
                folder = str(Path(place) / f"{name}-{rule}")
                with context.Pool(1) as pool:
                    taken, rounds, peak, size = pool.apply(_large, (name, rule, clients, width, answers, folder, toy))
                shutil.rmtree(folder, ignore_errors=True)
                rate = 60 * rounds / taken
                print(f"{name:<12} {rule:<16} {size / 1e9:13.1f} GB {rate:16.2f} {peak / 1e9:9.1f} GB", flush=True)


def _large(
    name: str, rule: str, clients: int, width: int, answers: int, folder: str, toy: bool
) -> tuple[float, int, int, int]:
    kind: StoreKind = Int8() if name == "int8" else Memmap(folder)
    player = Rounds(clients, width, answers, *RULES_ASKED[rule], kind)
    # Rows of clients that never answered are zero and take no memory: all are filled first.
    if rule == "krum":  # whose exact table would take an hour for that
        for client in range(clients):
            player.write(client)
    else:
        for start in range(0, clients, answers):
            player.play(range(start, start + answers))
    taken, rounds = 0.0, 0
    while taken < (0.5 if toy else 60.0) or rounds < 2:
        taken += player.play()
        rounds += 1
    size = sum(player.server.store.size(clients, width, 4))
    return taken, rounds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, size


def outlook(toy: bool) -> None:
    answers, wide, many, some = (10, 20_000, 1_000, 300) if toy else (100, 1_199_882, 1_000_000, 4_000)
    number = _usual(Rounds(10 * answers, wide, answers, "centered_clip", store="int8")) / (answers * wide)
    client = _usual(Rounds(many, 64, answers, "centered_clip", store="int8")) / many
    few, more = (_usual(Rounds(n, 1_000, answers, "krum", SKETCH, "int8")) for n in (some // 4, some))
    pair = (more - few) / (answers * (some - some // 4))
    print(f"a number of a fresh row: {1e9 * number:.2f} ns; a client that is there: {1e9 * client:.1f} ns; ", end="")
    print(f"a pair of a fresh row and another, in sketches of {SKETCH}: {1e9 * pair:.0f} ns")
    print(f"\nint8, {answers} answers a round\n")
    print(
        "| n | d | rows | traffic | centered_clip | krum, sketch: table | and a round |\n|--:|--:|--:|--:|--:|--:|--:|"
    )
    for clients in (10_000, 100_000, 1_000_000):
        for width in (10**6, 10**7, 10**8, 10**9):
            rows = Int8().size(clients, width, 4).memory
            clipped = number * answers * width + client * clients
            print(
                f"| {clients:,} | {width:,} | {_bytes(rows)} | {_bytes(8 * answers * width)} | {clipped:,.1f} s "
                f"| {_bytes(8 * clients * (clients + SKETCH))} | {clipped + pair * answers * clients:,.1f} s |"
            )


def _usual(player: Rounds, rounds: int = 30) -> float:
    """Return the mean time of a round, those in which sums are added up anew among them, after some that fill rows."""
    for _ in range(rounds):
        player.play()
    return float(np.mean([player.play() for _ in range(rounds)]))


def _bytes(number: float) -> str:
    for unit, factor in (("PB", 1e15), ("TB", 1e12)):
        if number >= factor:
            return f"{number / factor:,.1f} {unit}"
    return f"{number / 1e9:,.1f} GB"


if __name__ == "__main__":
    main()
