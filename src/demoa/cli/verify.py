"""`demoa verify`: are the figures of a study those that come out when its runs are played once more?"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from demoa.cli.sweep import slots_for
from demoa.core.checks import whole_number
from demoa.core.errors import ConfigError
from demoa.report.style import said
from demoa.results import read_results
from demoa.sweep.again import Outcome, check_same, drawn_runs, play_again
from demoa.sweep.engines import LocalEngine


def verify_command(
    path: Path, out: Path, cells: int, *, seed: int, processes: int | None, resume: bool, console: Console
) -> int:
    """Play some cells of a study again, say of each run whether it came out the same, and return the exit code."""
    runs = drawn_runs(read_results(path), whole_number("--cells", cells, least=1), whole_number("--seed", seed))
    check_same(runs)
    if out.exists() and not resume and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not an empty folder; choose another, or go on after an interrupt with --resume")
    several = "s" if cells > 1 else ""
    console.print(f"{len(runs)} runs of {cells} cell{several}, drawn with seed {seed}:", highlight=False)
    engine = LocalEngine(slots_for(processes, [run.spec for run in runs]))
    same = 0
    try:
        for outcome in play_again(runs, out, engine):
            same += outcome.final is not None and not outcome.differs
            console.print(_line(outcome), highlight=False, soft_wrap=True, markup=False)
    except KeyboardInterrupt:
        print("demoa: stopped; the same command with --resume goes on with it", file=sys.stderr)
        return 130
    finally:
        engine.close()
    console.print(f"{same} of {len(runs)} runs came out the same.", highlight=False)
    return 0 if same == len(runs) else 1


def _line(outcome: Outcome) -> str:
    run = outcome.run
    name = f"{run.id}  {said(run.cell | run.setting)}, seed {run.seed}"
    if outcome.final is None:
        return f"{name}: failed: {outcome.error}"
    before, now = (_figure(final.get("test_accuracy", final.get("test_loss"))) for final in (run.final, outcome.final))
    if not outcome.differs:
        return f"{name}: {now}, the same"
    line = f"{name}: {before} before, {now} now; {', '.join(outcome.differs)} differ"
    played = run.source.machines()
    if played in ([], outcome.machines):
        return line
    return f"{line}. It was played on {' and '.join(played)}, and now on {' and '.join(outcome.machines)}"


def _figure(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"
