"""One run, from its first round or from where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from demoa.core.errors import StoreError
from demoa.core.seeding import generator
from demoa.experiment.build import Experiment
from demoa.experiment.spec import run_id
from demoa.metrics import evaluate
from demoa.results import RunFolder
from demoa.results.folder import Record
from demoa.simulation.federation import Played

COLLAPSE = 0.2
"""A run has collapsed if it ends this far below its best accuracy."""


def start_run(experiment: Experiment, folder: RunFolder, watch: Callable[[Record], None]) -> Record:
    """Play a whole run into a new folder; `watch` is shown each record."""
    folder.start(run_id(experiment.resolved), experiment.resolved)
    return _play(experiment, folder, watch)


def resume_run(experiment: Experiment, folder: RunFolder, watch: Callable[[Record], None]) -> Record:
    """Go on with the run in a folder, from its last checkpoint; the result is that of a run that never stopped."""
    identity, _ = folder.spec()
    if identity != run_id(experiment.resolved):
        raise StoreError(f"{folder.path} holds another run than this spec describes; use another folder")
    if folder.state.exists():
        experiment.federation.server.load(folder.state)
    folder.keep_records(experiment.federation.server.round)
    return _play(experiment, folder, watch)


def _play(experiment: Experiment, folder: RunFolder, watch: Callable[[Record], None]) -> Record:
    run, server = experiment.spec.run, experiment.federation.server
    test = np.arange(len(experiment.dataset.test))
    subset = np.sort(generator(run.seed, "evaluation").permutation(test)[: run.eval_examples])
    try:
        while server.round < run.rounds:
            played = experiment.federation.play()
            record = _record(played)
            if server.round % run.eval_every == 0 or server.round == run.rounds:
                record |= _evaluated(experiment, subset)
            folder.append(record)
            watch(record)
            if server.round % run.checkpoint_every == 0:
                server.save(folder.state)
    except KeyboardInterrupt:
        # A round that was cut short is made again: the last whole one is what is saved.
        if server.round == len(folder.records()):
            server.save(folder.state)
        raise
    server.save(folder.state)
    final = _final(experiment, folder)
    folder.finish(final)
    return final


def _record(played: Played) -> Record:
    report = played.report
    return {
        "round": report.number,
        "sampled": list(played.sampled),
        "byzantine_sampled": played.byzantine,
        "majority": played.majority,
        "rejected": {str(client): reason for client, reason in report.rejected.items()},
        "f": report.f,
        "stalest": int(report.staleness.max()),
        **{name: float(value) for name, value in report.notes.items()},
    }


def _evaluated(experiment: Experiment, index: Any) -> Record:
    model = experiment.federation.worker.model
    model.set_parameters(torch.as_tensor(experiment.federation.server.parameters))
    found = evaluate(model.module, experiment.dataset.test, index)
    return {"loss": _finite(found.loss), "accuracy": found.accuracy}


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold; None for one that is not finite."""
    return value if np.isfinite(value) else None


def _final(experiment: Experiment, folder: RunFolder) -> Record:
    model = experiment.federation.worker.model
    model.set_parameters(torch.as_tensor(experiment.federation.server.parameters))
    dataset = experiment.dataset
    test = evaluate(model.module, dataset.test, np.arange(len(dataset.test)))
    validation = evaluate(model.module, dataset.train, experiment.validation)
    records = folder.records()
    curve = [record["accuracy"] for record in records if "accuracy" in record]
    return {
        "test_loss": _finite(test.loss),
        "test_accuracy": test.accuracy,
        "validation_accuracy": validation.accuracy,
        "best_accuracy": max(curve),
        "collapsed": not np.isfinite(test.loss) or max(curve) - test.accuracy >= COLLAPSE,
        "majority_rounds": sum(record["majority"] for record in records),
    }
