"""One server round, beside ByzFL, plain torch and one read of all rows, in one run.

    python benchmarks/server_round.py                 the table of docs/performance.md, about ten minutes
    python benchmarks/server_round.py --toy           the same code at toy size, for CI

Ours is everything the server does: the gate, k rows written, the table, mixing and rule, the aggregate and
the step. For the peers only the aggregation of rows that are already there is timed. Times are the best of
several, in milliseconds; a pass is one read of all rows (`X.sum()` in torch), timed beside each case.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import demoa
from timing import best, has_byzfl

MNIST, RESNET = 1_199_882, 11_173_962
RULES = ("mean", "krum", "geometric_median", "centered_clip", "median", "trimmed_mean", "meamed")
TURNS = 8
MIXED = ("krum", "geometric_median", "centered_clip", "median")


@dataclass(frozen=True)
class Case:
    """One line of the table: a rule behind a mixing, on n rows of which k are fresh."""

    n: int
    d: int
    k: int
    rule: str
    mixing: tuple[str, ...] = ()

    @property
    def f(self) -> int:
        """A fifth of the clients; the mean takes none."""
        return 0 if self.rule == "mean" else self.n // 5

    @property
    def name(self) -> str:
        """The mixing and the rule."""
        return " + ".join([*self.mixing, self.rule])


def cases(n: int, d: int, fresh: tuple[int, ...]) -> list[Case]:
    """Return all lines for one size."""
    plain = [Case(n, d, k, rule) for rule in RULES for k in fresh]
    mixed = [Case(n, d, k, rule, ("nnm",)) for rule in MIXED for k in fresh]
    return [*plain, *mixed, *(Case(n, d, k, "centered_clip", ("bucketing",)) for k in fresh)]


def best_of_slow(work: Callable[[], object]) -> float:
    """Return the least time of three runs, in milliseconds, for work that takes long and needs no warming up."""
    times: list[float] = []
    for _ in range(3):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return 1e3 * min(times)


def our_round(case: Case, draw: np.random.Generator) -> Callable[[], object]:
    """Return one whole round of a server whose rows are all filled."""
    server = demoa.Server(np.zeros(case.d, np.float32), case.n, f=case.f, rule=case.rule, mixing=case.mixing, lr=0.1)
    server.begin_round()
    for client in range(case.n):
        server.submit(client, draw.standard_normal(case.d, dtype=np.float32))
    server.end_round()
    fresh = draw.standard_normal((case.k, case.d), dtype=np.float32)

    def work() -> object:
        task = server.begin_round(range(case.k))
        for client in range(case.k):
            server.submit(client, fresh[client], round=task.number)
        return server.end_round()

    return work


def byzfl_aggregation(case: Case, rows: Any) -> Callable[[], object] | None:
    """Return ByzFL's aggregation of the same number of rows, where it has one and fits the memory."""
    if not has_byzfl():
        return None
    if "nnm" in case.mixing and 4 * case.n**2 * case.d > 8e9:
        return None  # it builds an (n, n, d) tensor
    from byzfl.aggregators import aggregators, preaggregators

    f = case.f
    rules = {
        "mean": aggregators.Average,
        "krum": lambda: aggregators.Krum(f),
        "geometric_median": lambda: aggregators.GeometricMedian(nu=0.1, T=8),
        "centered_clip": lambda: aggregators.CenteredClipping(m=None, L=3, tau=10.0),
        "median": aggregators.Median,
        "trimmed_mean": lambda: aggregators.TrMean(f),
        "meamed": lambda: aggregators.Meamed(f),
    }
    mixings = {"nnm": lambda: preaggregators.NNM(f), "bucketing": lambda: preaggregators.Bucketing(2)}
    rule = rules[case.rule]()
    chain = [mixings[step]() for step in case.mixing]

    def work() -> object:
        mixed = rows
        for step in chain:
            mixed = step(mixed)
        return rule(mixed)

    return work


def torch_aggregation(case: Case, rows: Any) -> Callable[[], object] | None:
    """Return the aggregation as one would write it in a few lines of torch, for the plain rules."""
    import torch

    n, f = case.n, case.f

    def krum() -> object:
        squares = torch.cdist(rows, rows).square()
        return rows[squares.topk(n - f - 1, largest=False).values.sum(1).argmin()]

    def geometric_median() -> object:
        centre = torch.zeros_like(rows[0])
        for _ in range(8):
            weights = 1 / (rows - centre).norm(dim=1).clamp(min=0.1)
            centre = (weights / weights.sum()) @ rows
        return centre

    def centered_clip() -> object:
        centre = torch.zeros_like(rows[0])
        for _ in range(3):
            away = rows - centre
            centre = centre + (away * (10.0 / away.norm(dim=1, keepdim=True)).clamp(max=1)).mean(0)
        return centre

    known: dict[str, Callable[[], object]] = {
        "mean": lambda: rows.mean(0),
        "krum": krum,
        "geometric_median": geometric_median,
        "centered_clip": centered_clip,
        "median": lambda: rows.median(0).values,
        "trimmed_mean": lambda: rows.sort(0).values[f : n - f].mean(0),
    }
    return None if case.mixing else known.get(case.rule)


def measure(case: Case, peers: dict[str, float | None], repeats: int, draw: np.random.Generator) -> dict[str, Any]:
    """Return one line of the table; the peers' times, which do not depend on k, are taken once."""
    import torch

    rows = torch.from_numpy(draw.standard_normal((case.n, case.d), dtype=np.float32))
    ours, one_pass = best(repeats, TURNS, our_round(case, draw), rows.sum)
    if not peers:
        for name, make in (("byzfl", byzfl_aggregation), ("torch", torch_aggregation)):
            work = make(case, rows)
            peers[name] = None if work is None else best_of_slow(work)
    return {
        "n": case.n,
        "d": case.d,
        "k": case.k,
        "rule": case.name,
        "ours": ours,
        "pass": one_pass,
        "passes": ours / one_pass,
        **peers,
    }


def show(line: dict[str, Any]) -> None:
    """Print one line of the table."""

    def ratio(peer: str) -> str:
        time = line[peer]
        return f"{'-':>9} {'':>7}" if time is None else f"{time:9.1f} {time / line['ours']:6.1f}x"

    print(
        f"{line['n']:>4} {line['d']:>10,} {line['k']:>3}  {line['rule']:<26} {line['ours']:8.1f} "
        f"{line['passes']:6.1f}  {ratio('byzfl')}  {ratio('torch')}",
        flush=True,
    )


def peak_memory(case: Case) -> dict[str, float]:
    """Return the peak resident memory of this process after rounds of this case, in MB, and the limit."""
    draw = np.random.default_rng(0)
    server = demoa.Server(np.zeros(case.d, np.float32), case.n, f=case.f, rule=case.rule, mixing=case.mixing, lr=0.1)
    for number in range(3):
        asked = range(case.n if number == 0 else case.k)
        server.begin_round(asked)
        for client in asked:
            server.submit(client, draw.standard_normal(case.d, dtype=np.float32))
        server.end_round()
    rows = case.n * case.d * 4 / 1e6
    return {
        "peak": high_water_mark(),
        "rows": rows,
        "limit": 1.2 * rows + 200,
    }


def high_water_mark() -> float:
    """Return the most memory that this process has had resident, in MB."""
    # Not getrusage: a child starts with the mark of its parent there.
    status = Path("/proc/self/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / 1e6


def memory_table(sizes: list[tuple[int, int]], k: int) -> None:
    """Measure peak memory, each case in a process of its own."""
    print("\npeak resident memory of a server process over three rounds, MB")
    print(f"{'n':>4} {'d':>10}  {'rule':<26} {'rows':>8} {'peak':>8} {'limit':>8}")
    for n, d in sizes:
        for rule, mixing in (("centered_clip", ()), ("median", ()), ("krum", ("nnm",))):
            case = Case(n, d, k, rule, mixing)
            command = [sys.executable, __file__, "--peak-of", json.dumps([n, d, k, rule, list(mixing)])]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"{n:>4} {d:>10,}  {case.name:<26} {found['rows']:8.0f} {found['peak']:8.0f} "
                f"{found['limit']:8.0f}{'' if found['peak'] <= found['limit'] else '  above the limit'}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="toy size, to see that it runs")
    parser.add_argument("--repeats", type=int, default=96)
    parser.add_argument("--json", help="write the lines to this file as well")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        n, d, k, rule, mixing = json.loads(options.peak_of)
        print(json.dumps(peak_memory(Case(n, d, k, rule, tuple(mixing)))))
        return
    sizes = [(10, 10_000)] if options.toy else [(25, MNIST), (100, MNIST), (25, RESNET)]
    repeats = 8 if options.toy else options.repeats
    print(f"{demoa.get_threads()} threads; times in ms, best of {repeats}; ours is a whole round")
    print(f"{'n':>4} {'d':>10} {'k':>3}  {'rule':<26} {'ours':>8} {'passes':>6}  {'ByzFL':>9} {'':>7}  {'torch':>9}")
    lines = []
    for n, d in sizes:
        peers: dict[str, dict[str, float | None]] = {}
        for case in cases(n, d, (3,) if options.toy else (3, 12)):
            fewer = repeats if n * d < 4e7 else repeats // 4
            line = measure(case, peers.setdefault(case.name, {}), fewer, np.random.default_rng(0))
            show(line)
            lines.append(line)
    memory_table(sizes, 3)
    if options.json:
        Path(options.json).write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
