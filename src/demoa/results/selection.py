"""Results of several studies as one, and a part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from demoa.core.errors import ConfigError, unknown_name
from demoa.results.reader import read_results
from demoa.results.run import Results


def read_together(paths: Sequence[Path]) -> Results:
    """Return the runs of several studies as those of one; all must compare the same axes.

    A run that is in more than one of them is there once.
    """
    first, *others = (read_results(path) for path in paths)
    for path, other in zip(paths[1:], others, strict=True):
        if set(other.axes) != set(first.axes):
            odd = ", ".join(sorted(set(other.axes) ^ set(first.axes)))
            raise ConfigError(f"{paths[0]} and {path} do not compare the same things: one of them alone has {odd}")
    if not others:
        return first
    every = (first, *others)
    runs = {(run.id, *sorted(run.cell.items())): run for each in every for run in each.runs}
    return replace(
        first,
        title="; ".join(dict.fromkeys(each.title for each in every)),
        note=" ".join(dict.fromkeys(each.note for each in every if each.note)),
        scaled=tuple(dict.fromkeys(line for each in every for line in each.scaled)),
        axes={axis: list(dict.fromkeys(label for each in every for label in each.axes[axis])) for axis in first.axes},
        seeds=tuple(sorted({seed for each in every for seed in each.seeds})),
        tuned=tuple(dict.fromkeys(axis for each in every for axis in each.tuned)),
        runs=tuple(runs.values()),
    )


def narrowed(results: Results, where: Mapping[str, Sequence[str]]) -> Results:
    """Return the runs whose labels are among those given, by axis."""
    for axis, labels in where.items():
        if axis not in results.axes:
            raise unknown_name("axis", axis, results.axes)
        for label in labels:
            if label not in results.axes[axis]:
                raise unknown_name(f"label of {axis}", label, results.axes[axis])
    kept = tuple(run for run in results.runs if all(run.cell[axis] in labels for axis, labels in where.items()))
    if not kept:
        raise ConfigError(
            "no run has all of these labels: " + ", ".join(f"{a}={','.join(w)}" for a, w in where.items())
        )
    axes = {
        axis: [label for label in labels if label in where.get(axis, labels)] for axis, labels in results.axes.items()
    }
    return replace(results, axes=axes, runs=kept)
