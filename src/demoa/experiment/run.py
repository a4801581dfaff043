"""One run, from its first round or from where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
import torch

from demoa.core.errors import StoreError
from demoa.core.machine import machine
from demoa.core.seeding import generator
from demoa.core.torch_threads import use_threads
from demoa.experiment.build import Experiment
from demoa.experiment.spec import run_id
from demoa.metrics import Evaluation, evaluate, fit_heterogeneity
from demoa.results import RunFolder
from demoa.results.folder import Record
from demoa.server.round import RoundReport
from demoa.simulation.federation import Played

COLLAPSE = 0.2
"""A run has collapsed if it ends this far below its best accuracy."""


def start_run(experiment: Experiment, folder: RunFolder, watch: Callable[[Record], None]) -> Record:
    """Play a whole run into a new folder; `watch` is shown each record. Returns the final figures."""
    begin(experiment, folder)
    return _watched(experiment, folder, watch)


def resume_run(experiment: Experiment, folder: RunFolder, watch: Callable[[Record], None]) -> Record:
    """Go on with the run in a folder, from its last checkpoint; the result is that of a run that never stopped."""
    take_up(experiment, folder)
    return _watched(experiment, folder, watch)


def _watched(experiment: Experiment, folder: RunFolder, watch: Callable[[Record], None]) -> Record:
    with closing(play(experiment, folder)) as rounds:
        for record in rounds:
            watch(record)
    final = folder.final()
    assert final is not None
    return final


def begin(experiment: Experiment, folder: RunFolder) -> None:
    """Make a folder ready for a new run."""
    folder.start(run_id(experiment.resolved), experiment.resolved)


def take_up(experiment: Experiment, folder: RunFolder) -> None:
    """Bring an experiment to where the run in a folder was at its last checkpoint."""
    identity, _ = folder.spec()
    if identity != run_id(experiment.resolved):
        raise StoreError(f"{folder.path} holds another run than this spec describes; use another folder")
    if folder.final() is not None and not folder.state.exists():
        raise StoreError(f"{folder.path} is through, and its server was not kept; there is nothing to resume")
    if folder.state.exists():
        experiment.federation.server.load(folder.state)
    folder.keep_records(experiment.federation.server.round)


def play(experiment: Experiment, folder: RunFolder, until: int | None = None) -> Generator[Record, None, None]:
    """Play the rounds that are left, one per record that is asked for; the last one leaves the final figures behind.

    Closed between two rounds, it saves where it is; what is cut short in the middle of a round goes back to the last
    checkpoint. With `until`, it pauses after that round: saves, and leaves what validation says there.
    """
    run, server = experiment.spec.run, experiment.federation.server
    stop = run.rounds if until is None else min(until, run.rounds)
    test = np.arange(len(experiment.dataset.test))
    subset = test
    if experiment.dataset.objective != "value":  # there, only all examples together are the function that is known
        subset = np.sort(generator(experiment.spec.seed("data"), "evaluation").permutation(test)[: run.eval_examples])
    folder.add_machine(machine(run.device, run.precision))
    try:
        while server.round < stop:
            use_threads(run.threads)
            record = _record(experiment.federation.play())
            if server.round % run.eval_every == 0 or server.round == run.rounds:
                record |= _plain(_evaluated(experiment, subset))
            if run.heterogeneity_every and server.round % run.heterogeneity_every == 0:
                record |= experiment.federation.heterogeneity()
            folder.append(record)
            if server.round % run.checkpoint_every == 0:
                server.save(folder.state)
            yield record
        use_threads(run.threads)
        server.save(folder.state)
        if stop == run.rounds:
            folder.finish(_final(experiment, folder))
        else:
            folder.add_score(stop, _validated(experiment))
    except (KeyboardInterrupt, GeneratorExit):
        # A round that was cut short is made again: the last whole one is what is saved.
        if server.round == len(folder.records()):
            server.save(folder.state)
        raise


def _record(played: Played) -> Record:
    report = played.report
    return {
        "round": report.number,
        "sampled": list(played.sampled),
        "byzantine_sampled": played.byzantine,
        "majority": played.majority,
        "rejected": {str(client): reason for client, reason in report.rejected.items()},
        "f": report.f,
        "weights": None if report.weights is None else [float(f"{weight:.6g}") for weight in report.weights],
        "stalest": int(report.staleness.max()),
        "aggregation_error": played.error,
        "step_length": played.length,
        "step_age": _age(report),
        "byzantine_weight": played.byzantine_weight,
        "train_loss": _finite(played.train_loss),
        **{name: float(value) for name, value in report.notes.items()},
    }


def _age(report: RoundReport) -> float | None:
    """Return how many rounds ago the clients that the rule weighs last answered: the mean over them, by weight."""
    if report.weights is None or not report.weights.any():
        return None
    ages = np.where(report.staleness < 0, report.number, report.staleness)
    return float(report.weights @ ages / report.weights.sum())


def _evaluated(experiment: Experiment, index: Any) -> Evaluation:
    model = experiment.federation.worker.model
    model.set_parameters(torch.as_tensor(experiment.federation.server.parameters))
    return evaluate(model.module, experiment.dataset, experiment.dataset.test, index)


def _validated(experiment: Experiment) -> Record:
    """Return loss and accuracy on the examples that are held out for tuning."""
    model = experiment.federation.worker.model
    model.set_parameters(torch.as_tensor(experiment.federation.server.parameters))
    found = evaluate(model.module, experiment.dataset, experiment.dataset.train, experiment.validation)
    return {f"validation_{name}": value for name, value in _plain(found).items()}


def _plain(found: Evaluation) -> Record:
    """Return an evaluation as JSON holds it."""
    loss = {"loss": _finite(found.loss)}
    return loss if found.accuracy is None else {**loss, "accuracy": found.accuracy}


def _finite(number: float | None) -> float | None:
    """Return a number as JSON holds it: None if it is not finite."""
    return None if number is None or not np.isfinite(number) else number


def _final(experiment: Experiment, folder: RunFolder) -> Record:
    dataset, records = experiment.dataset, folder.records()
    test = _evaluated(experiment, np.arange(len(dataset.test)))
    final = {f"test_{name}": value for name, value in _plain(test).items()}
    final |= _validated(experiment)
    collapsed = not np.isfinite(test.loss)
    if test.accuracy is not None:
        seen = [record["accuracy"] for record in records if "accuracy" in record]  # all on the same examples
        final["best_accuracy"] = max(seen)
        collapsed = collapsed or max(seen) - seen[-1] >= COLLAPSE
    estimates = [record for record in records if "heterogeneity" in record]
    if estimates:
        final["zeta"], final["b"] = fit_heterogeneity(estimates)
    majority = sum(record["majority"] for record in records)
    return final | {"collapsed": collapsed, "majority_rounds": majority}
