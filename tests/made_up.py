"""Studies that were never played: every file as a sweep leaves it, with figures from a formula."""

import itertools
import json
from dataclasses import replace

from demoa.experiment.spec import run_id
from demoa.results import read_results
from demoa.results.study import StudyFolder

ALGORITHMS = ["demoa", "fedavg", "fedcm", "marina_pp"]
SPLITS = ["IID", "non-IID"]


def made_up(path, *, rules=("cclip",), attacks=("alie", "bit_flip"), seeds=(0, 1, 2), rounds=300, holes=()):
    """Write a study into a folder; `holes` are (algorithm, attack, split, seed) of runs that failed.

    The accuracy of the k-th algorithm rises on a straight line to 0.5 + k / 10 + seed / 100.
    """
    axes = {"aggregation.rule": rules, "attack.name": attacks, "split": SPLITS, "algorithm.name": ALGORITHMS}
    folder = StudyFolder(path)
    cells, specs = [], {}
    for labels in itertools.product(*axes.values()):
        runs = {}
        for seed in seeds:
            spec = _spec(*labels, seed, rounds)
            runs[str(seed)] = run_id(spec)
            specs[run_id(spec)] = spec
        cells.append({"labels": dict(zip(axes, labels, strict=True)), "settings": [{"labels": {}, "runs": runs}]})
    content = {
        "id": "made up",
        "title": "Made up </script> & <b>bold</b>",
        "note": "",
        "scaled": ["1 of 3 seeds"],
        "report": {"rows": "split", "columns": "attack.name", "curves": "algorithm.name"},
        "axes": {axis: list(labels) for axis, labels in axes.items()},
        "seeds": list(seeds),
        "tune": {"method": "grid", "axes": []},
        "cells": cells,
    }
    folder.open(content)
    folder.choose(dict.fromkeys(range(len(cells)), 0))
    for identity, spec in specs.items():
        run = folder.run(identity)
        run.start(identity, spec)
        algorithm, seed = spec["algorithm"]["name"], spec["run"]["seed"]
        if (algorithm, spec["attack"]["name"], spec["task"]["partition"]["name"], seed) in holes:
            run.fail("RuntimeError: the <b>dog</b> ate it", "all that is known")
        else:
            _fill(run, rounds, 0.5 + ALGORITHMS.index(algorithm) / 10, seed)
    folder.close()
    return path


def _spec(rule, attack, split, algorithm, seed, rounds):
    return {
        "task": {"partition": {"name": split}},
        "algorithm": {"name": algorithm},
        "aggregation": {"rule": {"name": rule}},
        "attack": {"name": attack},
        "run": {"rounds": rounds, "seed": seed, "lr": 0.1},
    }


def _fill(run, rounds, height, seed):
    lines = []
    for number in range(1, rounds + 1):
        record = {
            "round": number,
            "majority": number % 41 == seed,
            "train_loss": 2.0 / number,
            "aggregation_error": 0.1,
            "weights": [0.04] * 25,
            "sampled": [1, 2, 3],
        }
        if number % 10 == 0:
            record |= {"loss": 2.0 / number, "accuracy": height * number / rounds + 0.01 * seed}
        lines.append(json.dumps(record) + "\n")
    (run.path / "records.jsonl").write_text("".join(lines))
    end = height + 0.01 * seed
    judged = {"test_accuracy": end, "test_loss": 0.1, "validation_accuracy": end, "validation_loss": 0.1}
    run.finish({**judged, "best_accuracy": end, "collapsed": False, "majority_rounds": 7})


def altered(study, change):
    """Results with other final figures: `change` takes a run and returns them."""

    class Source:
        def __init__(self, run):
            self.run = run

        def final(self):
            return change(self.run)

        def history(self):
            return self.run.source.history()

    read = read_results(study)
    return replace(read, runs=tuple(replace(run, source=Source(run)) for run in read.runs))
