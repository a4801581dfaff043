"""Which settings of a cell go on, and which is chosen: decided from scores alone, so the same after any interrupt."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from demoa.sweep.grid import Cell, PlannedRun, Setting
from demoa.sweep.study import Tune


class Seen(NamedTuple):
    """What is known of a run: whether it failed, and what validation said, by round."""

    failed: bool
    scores: dict[int, dict[str, Any]]


class Rung(NamedTuple):
    """A pause: after how many rounds, and how many settings go on from it."""

    rounds: int
    keep: int


@dataclass(frozen=True)
class Stage:
    """How far a cell is.

    Attributes:
        pending: The runs that are to be played now, and up to which round.
        dropped: The settings that do not go on.
        chosen: The setting that was chosen, once all is played.
        later: How many rounds are to be played after those that are pending.
    """

    pending: tuple[tuple[PlannedRun, int], ...]
    dropped: tuple[Setting, ...]
    chosen: Setting | None
    later: int


def rungs(tune: Tune, settings: int, rounds: int) -> tuple[Rung, ...]:
    """Return the pauses of successive halving: each keeps 1 / eta of the settings, for eta times as many rounds.

    >>> rungs(Tune("halving"), 9, 300)
    (Rung(rounds=34, keep=3), Rung(rounds=100, keep=1))
    >>> rungs(Tune("halving", keep=2), 9, 300)
    (Rung(rounds=34, keep=3), Rung(rounds=100, keep=2))
    >>> rungs(Tune("grid"), 9, 300)
    ()
    """
    if tune.method == "grid":
        return ()
    levels = 0
    while tune.eta**levels < settings:
        levels += 1
    found: list[Rung] = []
    for level in range(levels):
        pause = math.ceil(rounds / tune.eta ** (levels - level))
        keep = max(tune.keep, math.ceil(settings / tune.eta ** (level + 1)))
        alive = found[-1].keep if found else settings
        if pause >= tune.least_rounds and pause < rounds and keep < alive:
            found.append(Rung(pause, keep))
    return tuple(found)


def stage(tune: Tune, cell: Cell, look: Callable[[PlannedRun], Seen]) -> Stage:
    """Return how far a cell is, from what is known of its runs."""
    seen = {run.id: look(run) for run in cell.runs}
    rounds = cell.runs[0].rounds
    stops = (*rungs(tune, len(cell.settings), rounds), Rung(rounds, 1))
    alive = list(cell.settings)
    for place, stop in enumerate(stops):
        pending = [
            (run, stop.rounds)
            for setting in alive
            for run in setting.runs
            if not seen[run.id].failed and stop.rounds not in seen[run.id].scores
        ]
        if pending:
            dropped = tuple(setting for setting in cell.settings if setting not in alive)
            return Stage(tuple(pending), dropped, None, _later(stops[place:], cell, seen))
        order = sorted(alive, key=lambda setting: _merit(setting, seen, stop.rounds), reverse=True)
        alive = [setting for setting in alive if setting in order[: stop.keep]]
    dropped = tuple(setting for setting in cell.settings if setting not in alive)
    return Stage((), dropped, alive[0], 0)


def _later(stops: tuple[Rung, ...], cell: Cell, seen: dict[str, Seen]) -> int:
    """Return how many rounds come after the first of some stops; what runs have played already does not come again."""
    seeds = len(cell.runs) // len(cell.settings)
    total = 0
    for here, there in pairwise(stops):
        played = sum(there.rounds in seen[run.id].scores for run in cell.runs)
        total += max(0, here.keep * seeds - played) * (there.rounds - here.rounds)
    return total


def _merit(setting: Setting, seen: dict[str, Seen], rounds: int) -> tuple[bool, float, float]:
    """Return what settings are ordered by: mean accuracy over all seeds, then loss; one that failed comes last.

    What happened after those rounds does not count: a pause that was settled stays settled.
    """
    if any(rounds not in seen[run.id].scores for run in setting.runs):
        return (False, 0.0, 0.0)
    scores = [seen[run.id].scores[rounds] for run in setting.runs]
    losses = [math.inf if score["validation_loss"] is None else score["validation_loss"] for score in scores]
    loss = sum(losses) / len(losses)
    accuracies = [score["validation_accuracy"] for score in scores if "validation_accuracy" in score]
    return (True, sum(accuracies) / len(scores) if accuracies else -loss, -loss)
