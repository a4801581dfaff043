"""Results of several studies as one, and a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from demoa.core.errors import ConfigError, unknown_name
from demoa.results.reader import read_results
from demoa.results.run import Results, RunResult
from demoa.results.tables import Key, judged, key_of, known_axes


def read_together(paths: Sequence[Path]) -> Results:
    """Return the runs of several studies as those of one; all must compare the same axes over the same seeds.

    A run that is in more than one of them is there once, as far as it came in any of them.
    """
    first, *others = (read_results(path) for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        if set(other.axes) != set(first.axes):
            odd = ", ".join(sorted(set(other.axes) ^ set(first.axes)))
            raise ConfigError(f"{paths[0]} and {path} do not compare the same things: one of them alone has {odd}")
        if set(other.seeds) != set(first.seeds):
            raise ConfigError(f"{paths[0]} and {path} are over other seeds; read them one by one")
    if not others:
        return first
    every = (first, *others)
    runs: dict[tuple[str, Key], RunResult] = {}
    for run in (run for each in every for run in each.runs):
        place = (run.id, key_of(run.cell))
        if place in runs and {run.chosen, runs[place].chosen} == {True, False}:
            raise _contradiction(place[1])
        if place not in runs or _standing(run) > _standing(runs[place]):
            runs[place] = run
    together = replace(
        first,
        title="; ".join(dict.fromkeys(each.title for each in every)),
        note=" ".join(dict.fromkeys(each.note for each in every if each.note)),
        scaled=tuple(dict.fromkeys(line for each in every for line in each.scaled)),
        axes={axis: list(dict.fromkeys(label for each in every for label in each.axes[axis])) for axis in first.axes},
        tuned=tuple(dict.fromkeys(axis for each in every for axis in each.tuned)),
        runs=tuple(runs.values()),
    )
    _check_choices(together)
    return together


def _standing(run: RunResult) -> tuple[bool, bool]:
    """Return which of two copies of a run to keep: one that is through, and whose cell is settled."""
    return run.status == "done", run.chosen is not None


def _check_choices(results: Results) -> None:
    """Raise ConfigError if two studies chose different settings for one cell."""
    for key, runs in judged(results).items():
        if len({key_of(run.setting) for run in runs}) > 1:
            raise _contradiction(key)


def _contradiction(cell: Key) -> ConfigError:
    labels = ", ".join(label for _, label in cell)
    return ConfigError(f"these studies chose different settings for one cell ({labels}); read them one by one")


def narrowed(results: Results, where: Mapping[str, Sequence[str]]) -> Results:
    """Return the runs whose labels are among those given, by axis: each text is a label, or several with commas.

    Labels that none of these runs should have, as their cells were left out of the study, are gone from the axes.
    """
    if not where:
        return results
    chosen = {axis: _labels(results, axis, texts) for axis, texts in where.items()}
    kept = tuple(run for run in results.runs if all(run.cell[axis] in labels for axis, labels in chosen.items()))
    if not kept:
        said = "; ".join(f"{axis}: {', '.join(labels)}" for axis, labels in chosen.items())
        raise ConfigError(f"no run has all of these labels: {said}")
    left = {axis: {run.cell[axis] for run in kept} for axis in results.axes}
    axes = {axis: [label for label in labels if label in left[axis]] for axis, labels in results.axes.items()}
    return replace(results, axes=axes, runs=kept)


def _labels(results: Results, axis: str, texts: Sequence[str]) -> list[str]:
    known_axes(results, [axis])
    known = results.axes[axis]
    found = []
    for text in texts:
        for label in [text] if text in known else [part.strip() for part in text.split(",")]:
            if label not in known:
                raise unknown_name(f"label of {axis}", label, known)
            found.append(label)
    return found
