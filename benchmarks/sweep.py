"""How busy a sweep keeps the cores, and what it costs beside its runs.

    python benchmarks/sweep.py                    a part of the MNIST grid, ten minutes
    python benchmarks/sweep.py --toy              digits, seconds

The processor time is that of the whole command, from start to end: imports, runs, bookkeeping, and the tail in which
the last run is alone. The cost of a run is what its process does besides it, plus the time between two runs.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from demoa.core.threads import cores
from demoa.results.folder import Record
from demoa.results.study import StudyFolder

ROOT = Path(__file__).parents[1]
TOY = """
[spec.run]
rounds = 200
[axes]
algorithm.name = ["demoa", "fedavg"]
attack.name = ["alie", "bit_flip"]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs="?", type=Path, default=ROOT / "studies" / "mnist-slice.toml")
    parser.add_argument("--set", action="append", default=[], help="a setting, as in demoa sweep")
    parser.add_argument("--toy", action="store_true", help="a small study on digits")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        study = chosen.study
        if chosen.toy:
            study = Path(place) / "toy.toml"
            study.write_text(TOY)
        out = Path(place) / "out"
        words = [word for setting in chosen.set for word in ("--set", setting)]
        begun, before = time.monotonic(), _processor_time()
        command = [sys.executable, "-c", "from demoa.cli.main import main; main()", "sweep", str(study)]
        subprocess.run([*command, "--out", str(out), *words], check=True)
        seconds, spent = time.monotonic() - begun, _processor_time() - before
        _print(seconds, spent, StudyFolder(out).journal())


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _print(seconds: float, spent: float, journal: list[Record]) -> None:
    ended = [event for event in journal if event["event"] == "ended"]
    played, setup = (sum(event[name] for event in ended) for name in ("seconds", "setup"))
    gaps = _gaps(journal)
    print(f"{len(ended)} pieces of work in {seconds:.0f} s on {cores()} cores")
    print(f"processor time of the whole command: {spent / seconds / cores():.1%} of the cores")
    print(f"runs: {played:.1f} s; getting ready for them: {setup:.2f} s, {setup / played:.2%} of the runs")
    print(f"between the end of one and the beginning of the next: {gaps:.2f} s, {gaps / played:.2%} of the runs")


def _gaps(journal: list[Record]) -> float:
    """Return how long slots were empty while there was work: from the end of a job to the next one's beginning."""
    total, free = 0.0, []
    for event in journal:
        at = datetime.fromisoformat(event["at"]).timestamp()
        if event["event"] == "ended":
            free.append(at)
        elif free:
            total += at - free.pop(0)
    return total


if __name__ == "__main__":
    main()
