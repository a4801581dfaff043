"""Runs repeat, resume and go through attacks, byte for byte."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import demoa
from demoa.aggregation.stores import Dense
from demoa.aggregation.stores.device import DeviceStore
from demoa.attacks import ATTACKS
from demoa.core.machine import machine
from demoa.core.seeding import generator
from demoa.experiment.build import make_experiment, resolve
from demoa.experiment.load import read_spec, spec_from
from demoa.experiment.run import resume_run, start_run
from demoa.results import RunFolder

SMALL = ("run.rounds=12", "run.eval_every=4", "run.checkpoint_every=3", "clients.n=10", "clients.byzantine=2")


def play(path, *settings, until=None):
    """Run a small spec into a folder; `until` stops it as Ctrl-C would, in the middle of that round."""

    def watch(record):
        if until is not None and record["round"] == until:
            raise KeyboardInterrupt

    experiment = make_experiment(read_spec(None, [*SMALL, *settings]))
    return start_run(experiment, RunFolder(path), watch)


def outcome(path):
    """All that a run leaves behind, as bytes."""
    return {name: (path / name).read_bytes() for name in ("records.jsonl", "state.safetensors", "final.json")}


@pytest.mark.parametrize("algorithm", sorted(demoa.algorithms.ALGORITHMS))
def test_the_same_spec_gives_the_same_bytes(tmp_path, algorithm):
    for name in ("one", "other"):
        play(tmp_path / name, f"algorithm.name={algorithm}")
    assert outcome(tmp_path / "one") == outcome(tmp_path / "other")


@pytest.mark.parametrize("algorithm", sorted(demoa.algorithms.ALGORITHMS))
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not(tmp_path, algorithm):
    play(tmp_path / "straight", f"algorithm.name={algorithm}")
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path / "stopped", f"algorithm.name={algorithm}", until=5)
    folder = RunFolder(tmp_path / "stopped")
    experiment = make_experiment(spec_from(folder.spec()[1]))
    resume_run(experiment, folder, lambda record: None)
    assert outcome(tmp_path / "straight") == outcome(tmp_path / "stopped")


def test_a_run_says_on_which_machines_it_was_played(tmp_path, monkeypatch):
    here = machine("cpu")
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path / "run", until=5)
    folder = RunFolder(tmp_path / "run")
    assert folder.machines() == [here]
    monkeypatch.setattr("demoa.experiment.run.machine", lambda device, precision: f"an abacus for {device}")
    resume_run(make_experiment(spec_from(folder.spec()[1])), folder, lambda record: None)
    assert folder.machines() == [here, "an abacus for cpu"]


def test_a_run_in_bfloat16_is_another_run_close_by_and_goes_on_bit_for_bit(tmp_path):
    exact, rounded = (first_update(*SMALL, f"run.precision={name}") for name in ("float32", "bfloat16"))
    assert rounded.dtype == np.float32
    assert 0 < np.linalg.norm(rounded - exact) < 0.02 * np.linalg.norm(exact)  # 8 bits, and sums of a few roundings
    play(tmp_path / "straight", "run.precision=bfloat16")
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path / "stopped", "run.precision=bfloat16", until=5)
    folder = RunFolder(tmp_path / "stopped")
    assert folder.spec()[1]["run"]["precision"] == "bfloat16"
    resume_run(make_experiment(spec_from(folder.spec()[1])), folder, lambda record: None)
    assert outcome(tmp_path / "straight") == outcome(tmp_path / "stopped")


def first_update(*settings):
    """What an honest client answers to the start of a run."""
    federation = make_experiment(read_spec(None, settings)).federation
    return federation.worker.update(5, 1, federation.server.parameters).vector.numpy()


def test_a_setting_that_says_the_default_is_the_same_run():
    said = ("run.precision=float32", "clients.adversary_sees=aggregated", "clients.adversary_lies_in=all")
    assert resolve(read_spec(None, SMALL)) == resolve(read_spec(None, [*SMALL, *said]))


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_every_attack_plays_against_every_kind_of_server(tmp_path, attack):
    for algorithm in ("demoa", "fedavg", "fedcm", "marina_pp"):
        path = tmp_path / algorithm
        final = play(path, f"attack.name={attack}", f"algorithm.name={algorithm}", "sampling.p=0.5")
        assert np.isfinite(final["test_loss"])
        refused = [record["rejected"] for record in RunFolder(path).records()]
        assert any(refused) == (attack == "inf")


def test_chosen_rows_reach_the_server():
    """Whatever the momentum, the Byzantine row becomes what the attack wants it to be."""
    for algorithm in ("demoa", "hold", "fedcm"):
        spec = read_spec(None, [*SMALL, f"algorithm.name={algorithm}", "attack.name=ipm", "sampling.p=1.0"])
        federation = make_experiment(spec).federation
        for _ in range(3):
            federation.play()
        honest = np.array([federation.server.momentum_of(client).numpy() for client in range(2, 10)])
        for liar in (0, 1):
            row = federation.server.momentum_of(liar).numpy()
            np.testing.assert_allclose(row, -0.1 * honest.mean(axis=0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("algorithm", ["demoa", "fedavg"])
@pytest.mark.parametrize("sees", [None, "aggregated", "sampled", "all"])
def test_an_attack_is_shown_the_honest_rows_that_the_spec_says(algorithm, sees):
    """IPM's row is -0.1 times the mean of what it is shown, so it tells what that was."""
    settings = [*SMALL, f"algorithm.name={algorithm}", "attack.name=ipm", "sampling.p=0.4"]
    federation = make_experiment(
        read_spec(None, settings + ([] if sees is None else [f"clients.adversary_sees={sees}"]))
    ).federation
    lied = False
    for _ in range(12):
        played = federation.play()
        liars = [client for client in played.sampled if client < 2]
        fresh = [client for client in played.sampled if client >= 2]
        everyone = sees == "all" or (sees in (None, "aggregated") and algorithm == "demoa") or not fresh
        shown = range(2, 10) if everyone else fresh
        for liar in liars:
            lied = lied or 0 < len(fresh) < 8
            expected = -0.1 * np.mean([federation.server.momentum_of(client).numpy() for client in shown], axis=0)
            np.testing.assert_allclose(federation.server.momentum_of(liar).numpy(), expected, rtol=1e-4, atol=1e-6)
    assert lied


@pytest.mark.parametrize("algorithm", ["demoa", "fedavg"])
def test_mimic_copies_one_client_to_the_end_whoever_takes_part(tmp_path, algorithm):
    """As far as it is known: the row that a client left behind, also where the rule does not see it."""
    spec = read_spec(None, [*SMALL, f"algorithm.name={algorithm}", "attack.name=mimic", "sampling.p=0.4"])
    federation = make_experiment(spec).federation
    copied, seen, absent = set(), set(), 0
    for number in range(24):
        if number == 12:  # a run that goes on copies the same client
            federation.server.save(tmp_path / "state.safetensors")
            federation = make_experiment(spec).federation
            federation.server.load(tmp_path / "state.safetensors")
        played = federation.play()
        seen |= {client for client in played.sampled if client >= 2}
        rows = {client: federation.server.momentum_of(client).numpy() for client in range(10)}
        for liar in (client for client in played.sampled if client < 2):
            alike = {client for client in seen if np.allclose(rows[liar], rows[client], rtol=1e-4, atol=1e-7)}
            copied |= alike
            absent += bool(alike - set(played.sampled))
    assert len(copied) == 1
    assert absent


@pytest.mark.parametrize("attack", ["ipm", "bit_flip", "label_flip"])
def test_an_adversary_lies_only_in_the_rounds_that_the_spec_says(attack):
    """Round by round: a client that behaves sends what it would if there were no attack."""
    settings = [*SMALL, "clients.byzantine=4", "algorithm.name=fedavg", "aggregation.rule=median", "sampling.p=0.3"]

    def rows(lies_in, name):
        spec = read_spec(
            None, [*settings, f"attack.name={name}", f"clients.adversary_lies_in={lies_in}", "run.lr=1e-9"]
        )
        federation = make_experiment(spec).federation
        for _ in range(12):
            played = federation.play()
            sent = [federation.server.momentum_of(client).numpy() for client in played.sampled if client < 4]
            yield played.majority, sent

    kinds = set()
    for (majority, always), (_, some), (_, others), (_, never) in zip(
        rows("all", attack), rows("majority", attack), rows("minority", attack), rows("all", "none"), strict=True
    ):
        if always:
            kinds.add(majority)
            lying, behaving = (some, others) if majority else (others, some)
            np.testing.assert_allclose(lying, always, rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(behaving, never, rtol=1e-3, atol=1e-5)
            assert not np.allclose(always, never, rtol=1e-2, atol=1e-4)
    assert kinds == {False, True}


def draws_of(*settings):
    """What each kind of draws came to in the first rounds of a run, by its name in [seeds]."""
    experiment = make_experiment(read_spec(None, [*SMALL, "attack.name=gaussian", "sampling.p=0.5", *settings]))
    federation = experiment.federation
    found = {
        "model": federation.adversary.start.clone(),
        "data": np.concatenate([experiment.validation, *federation.worker.shards]),
        # At the same parameters and on the same data, whatever the other streams did to them.
        "clients": generator(federation.worker.seed, "batch", 2, 9).random(5),
    }
    federation.play()
    before = federation.server.parameters.clone()
    sampled = federation.play().sampled
    return found | {"sampling": sampled, "moved": federation.server.parameters - before}


@pytest.mark.parametrize("kind", ["data", "model", "sampling", "clients"])
def test_another_seed_of_one_stream_leaves_the_others_as_they_were(kind):
    one, other = draws_of(), draws_of(f"seeds.{kind}=7")
    for name in ("data", "model", "sampling", "clients"):
        assert np.array_equal(one[name], other[name]) == (name != kind)
    assert not np.array_equal(one["moved"], other["moved"])


@pytest.mark.parametrize("kind", ["attack", "mixing"])
def test_another_seed_of_lies_or_buckets_leaves_honest_clients_as_they_were(kind):
    """In the first round, where all is seen at the same parameters."""

    def first_rows(*settings):
        common = [*SMALL, "attack.name=gaussian", "aggregation.mixing=bucketing", "sampling.p=1.0"]
        federation = make_experiment(read_spec(None, [*common, *settings])).federation
        federation.play()
        rows = [federation.server.momentum_of(client).numpy() for client in range(10)]
        return rows[:2], rows[2:], federation.server.parameters.numpy()

    (lies, honest, moved), (other_lies, other_honest, other_moved) = first_rows(), first_rows(f"seeds.{kind}=7")
    np.testing.assert_array_equal(honest, other_honest)
    assert np.array_equal(lies, other_lies) == (kind == "mixing")
    assert not np.array_equal(moved, other_moved)


def test_local_steps_send_a_pseudo_gradient():
    one = make_experiment(read_spec(None, SMALL)).federation.worker
    several = make_experiment(read_spec(None, [*SMALL, "clients.local_steps=3"])).federation.worker
    start = one.model.parameters.clone()
    gradient = one.update(4, 1, start).vector.clone()
    pseudo = several.update(4, 1, start).vector.clone()
    assert not np.allclose(gradient, pseudo)
    cosine = float((gradient @ pseudo) / (gradient.norm() * pseudo.norm()))
    assert 0.5 < cosine < 1.0
    assert 0.3 < float(pseudo.norm() / gradient.norm()) < 1.5


def test_training_learns_and_demoa_stands_attacks(tmp_path):
    final = play(
        tmp_path / "run", "run.rounds=150", "run.eval_every=50", "run.checkpoint_every=100", "attack.name=alie"
    )
    assert final["test_accuracy"] > 0.85
    assert not final["collapsed"]
    assert final["majority_rounds"] > 0


def test_records_say_what_the_rule_did(tmp_path):
    play(tmp_path / "run", "aggregation.rule=krum", "attack.name=ipm", "sampling.p=0.4", "run.heterogeneity_every=4")
    records = RunFolder(tmp_path / "run").records()
    for record in records:
        assert np.count_nonzero(record["weights"]) == 1
        assert record["aggregation_error"] > 0
        assert record["byzantine_weight"] == sum(record["weights"][:2])
        (chosen,) = np.flatnonzero(record["weights"])
        assert record["step_age"] == min(
            record["round"] - before["round"]
            for before in records
            if chosen in before["sampled"] and before["round"] <= record["round"]
        )
    assert [record["round"] for record in records if "heterogeneity" in record] == [4, 8, 12]
    final = RunFolder(tmp_path / "run").final()
    assert final["zeta"] >= 0
    assert final["b"] >= 0


@pytest.mark.parametrize("rule", ["mean", '{name="centered_clip", tau=1000.0}'])
def test_error_and_length_of_a_step_are_those_of_the_rows(rule):
    """Found with a pass over the rows, and from the table."""
    settings = [*SMALL, f"aggregation.rule={rule}", "aggregation.f=0", "attack.name=ipm"]
    federation = make_experiment(read_spec(None, settings)).federation
    federation.play()
    played = federation.play()
    rows = np.array([federation.server.momentum_of(client).numpy() for client in range(10)], float)
    expected = np.linalg.norm(rows.mean(axis=0) - rows[2:].mean(axis=0))
    assert played.error == pytest.approx(expected, rel=1e-4)
    assert played.length == pytest.approx(np.linalg.norm(rows.mean(axis=0)) / np.linalg.norm(rows[2:].mean(axis=0)))


def test_a_step_along_the_honest_mean_has_no_error():
    """What rounding leaves of it is 0, and so the same on every processor."""
    far = 'aggregation.rule={name="centered_clip", tau=1000.0}'
    settings = [*SMALL, far, "aggregation.f=0", "attack.name=none", "clients.byzantine=0"]
    federation = make_experiment(read_spec(None, settings)).federation
    assert [federation.play().error for _ in range(5)] == [0.0] * 5


def test_where_rows_cancel_error_and_length_are_measured_on_them():
    """At the minimum, the mean of the rows is 0 and what a table says of it is rounding of their products."""
    settings = ['task.dataset={name="quadratics", sigma=0.0, zeta=1.0}', "task.model=quadratic", "clients.n=20"]
    settings += ["task.partition=one_label", "clients.byzantine=0", "clients.batch_size=1", "attack.name=none"]
    settings += ["algorithm.name=hold", "sampling.p=0.3", "run.lr=0.3", "aggregation.f=0"]
    settings += ['aggregation.rule={name="centered_clip", tau=1000.0}']
    federation = make_experiment(read_spec(None, settings)).federation
    played = [federation.play() for _ in range(200)]
    assert max(each.error for each in played) < 1e-14
    assert [each.length for each in played] == pytest.approx([1.0] * 200, rel=1e-5)


def test_clients_that_never_answered_are_as_old_as_the_run(tmp_path):
    settings = ["aggregation.rule=mean", "aggregation.f=0", "attack.name=none", "clients.byzantine=0"]
    play(tmp_path / "run", *settings, "algorithm.full_first_round=false", "sampling.p=0.3")
    seen = {}
    for record in RunFolder(tmp_path / "run").records():
        seen |= dict.fromkeys(record["sampled"], record["round"])
        ages = [record["round"] - seen.get(client, 0) for client in range(10)]
        assert record["step_age"] == pytest.approx(np.mean(ages))
    assert len(seen) > 1


def test_a_run_on_a_torch_store_is_that_of_the_dense_one(monkeypatch):
    """What runs on a GPU, on the CPU: every attack meets tensors there."""
    for attack in sorted(ATTACKS):
        settings = [*SMALL, f"attack.name={attack}", "sampling.p=0.5", "aggregation.rule=median"]
        dense = make_experiment(read_spec(None, settings)).federation
        with monkeypatch.context() as patch:
            patch.setattr(Dense, "make", lambda self, clients, own, like: DeviceStore.zeros(clients + own, like))
            device = make_experiment(read_spec(None, settings)).federation
        for _ in range(3):
            dense.play()
            device.play()
        np.testing.assert_allclose(device.server.parameters, dense.server.parameters, rtol=0, atol=1e-5)


def test_a_run_that_diverges_ends_and_says_so(tmp_path):
    settings = ["task.dataset=least_squares", "task.model=linear", "run.lr=100", "run.rounds=40", "attack.name=none"]
    final = play(tmp_path / "run", *settings, "aggregation.rule=mean", "aggregation.f=0", "algorithm.name=fedavg")
    assert final["collapsed"]
    assert any(record["rejected"] for record in RunFolder(tmp_path / "run").records())


def test_the_loss_of_a_known_function_is_recorded_exactly(tmp_path):
    task = ["task.dataset={name='quadratics', clients=8}", "task.model=quadratic", "task.partition=one_label"]
    final = play(tmp_path / "run", *task)
    assert final["test_loss"] == RunFolder(tmp_path / "run").records()[-1]["loss"] > 0
    _, spec = RunFolder(tmp_path / "run").spec()
    assert spec["task"]["dataset"]["zeta"] == 1.0
    assert spec["task"]["model"] == {"name": "quadratic", "distance": 1.0}


KILLED = """
import sys
from pathlib import Path
from demoa.experiment.build import make_experiment
from demoa.experiment.load import read_spec, spec_from
from demoa.experiment.run import resume_run, start_run
from demoa.results import RunFolder
folder = RunFolder(Path(sys.argv[1]))
if (folder.path / "spec.json").exists():
    resume_run(make_experiment(spec_from(folder.spec()[1])), folder, lambda record: None)
else:
    start_run(make_experiment(read_spec(None, sys.argv[2:])), folder, lambda record: None)
"""


@pytest.mark.parametrize(("algorithm", "wanted"), [("demoa", 4), ("marina_pp", 2), ("fedcm", 1), ("mifa", 1)])
def test_kill_9_at_random_moments_changes_nothing(tmp_path, algorithm, wanted):
    """A real process, killed again and again, and taken up each time."""
    settings = [*SMALL, "run.rounds=600", "run.eval_every=100", "run.checkpoint_every=7", f"algorithm.name={algorithm}"]
    play(tmp_path / "straight", *settings)
    killed = tmp_path / "killed"
    random = np.random.default_rng([*algorithm.encode()])
    kills = 0
    while not (killed / "final.json").exists():
        process = subprocess.Popen([sys.executable, "-c", KILLED, killed, *settings])
        before = progress(killed)
        deadline = time.monotonic() + 60
        # Let it get somewhere, so that the test ends, and then strike at any moment.
        while process.poll() is None and progress(killed) < before + 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 0.15))
        if process.poll() is None and kills < wanted:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills == wanted
    assert outcome(tmp_path / "straight") == outcome(killed)


def progress(path: Path) -> int:
    records = path / "records.jsonl"
    return records.read_text().count("\n") if records.exists() else 0
