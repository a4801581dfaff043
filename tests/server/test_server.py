"""The life of a server: rounds, who is asked, what is reported, in whose arrays."""

import threading

import numpy as np
import pytest
import torch

import demoa
from demoa.server.state import saved_roster

D = 5


def run(server, rounds, seed=0, asked=None):
    """Run rounds with random vectors; the first asks everyone."""
    random = np.random.default_rng(seed)
    reports = []
    for _ in range(rounds):
        vectors = random.standard_normal((len(server.clients), D))
        chosen = [name for name in server.clients if random.random() < 0.4]
        server.begin_round(None if server.round == 0 else chosen if asked is None else asked)
        for name, vector in zip(server.clients, vectors, strict=True):
            if server.round == 1 or name in (chosen if asked is None else asked):
                server.submit(name, vector)
        reports.append(server.end_round())
    return reports


@pytest.mark.parametrize("rule", sorted(set(demoa.rules.RULES) - {"mean", "monna"}))
@pytest.mark.parametrize("algorithm", sorted(demoa.algorithms.ALGORITHMS))
def test_every_rule_runs_under_every_algorithm(rule, algorithm):
    server = demoa.Server(np.zeros(D), 7, f=1, rule=rule, mixing="nnm", algorithm=algorithm, lr=0.01)
    reports = run(server, 12)
    assert [report.number for report in reports] == list(range(1, 13))
    assert np.isfinite(server.parameters).all()
    assert np.linalg.norm(server.parameters) > 0


@pytest.mark.parametrize("algorithm", sorted(demoa.algorithms.ALGORITHMS))
def test_a_round_without_vectors_does_not_fail(algorithm):
    server = demoa.Server(np.zeros(D), 5, f=1, rule="rfa", algorithm=algorithm)
    server.begin_round()
    np.testing.assert_array_equal(server.end_round().parameters, np.zeros(D))
    run(server, 1, asked=[0, 1, 2, 3])
    before = server.parameters
    server.begin_round([])
    report = server.end_round()
    if server.algorithm.delayed:
        assert report.f == 1
        assert not np.array_equal(report.parameters, before)
    else:
        assert report.f is None
        assert report.weights is None
        np.testing.assert_array_equal(report.parameters, before)


def test_calls_out_of_order_are_refused():
    server = demoa.Server(np.zeros(D), 3, f=1, rule="median")
    with pytest.raises(demoa.RoundError, match="no round is open"):
        server.end_round()
    server.begin_round()
    with pytest.raises(demoa.RoundError, match="round 1 is still open"):
        server.begin_round()
    server.end_round()
    assert server.round == 1


def test_a_refused_round_leaves_the_server_as_it_was():
    server = demoa.Server(np.zeros(D), 3, f=1, rule="median")
    run(server, 2)
    before = [server.momentum_of(client) for client in range(3)]
    for options in (
        {"alpha": 0.0},
        {"alpha": np.array([0.5])},
        {"p": 1.5},
        {"p": np.full((3, 1), 0.5)},
        {"p": [0.5, 0.5]},
        {"p": "often"},
        {"lr": -1.0},
        {"lr": np.inf},
        {"lr": np.array([0.1])},
        {"asked": [0, 9]},
        {"asked": [[0]]},
        {"asked": "012"},
        {"asked": 1},
    ):
        with pytest.raises(demoa.ConfigError) as error:
            server.begin_round(**{"asked": [0], **options})
        assert "\n" not in str(error.value)
    assert server.round == 2
    for client in range(3):
        np.testing.assert_array_equal(server.momentum_of(client), before[client])


@pytest.mark.parametrize(("algorithm", "refused"), [("fedavg", "alpha"), ("mifa", "p"), ("hold", "p"), ("fedcm", "p")])
def test_values_that_an_algorithm_does_not_have_are_refused(algorithm, refused):
    server = demoa.Server(np.zeros(D), 3, f=1, rule="median", algorithm=algorithm)
    with pytest.raises(demoa.ConfigError, match=f"{refused} must be left out"):
        server.begin_round(**{refused: 0.5})


def test_a_rule_that_raises_closes_the_round_and_the_server_goes_on(tmp_path):
    class Moody(demoa.rules.Median):
        def decide(self, table, f):
            if self.angry:
                raise ZeroDivisionError
            return super().decide(table, f)

    rule = Moody()
    object.__setattr__(rule, "angry", True)
    server = demoa.Server(np.zeros(D), 3, f=1, rule=rule)
    server.begin_round()
    server.submit(0, np.ones(D))
    with pytest.raises(ZeroDivisionError):
        server.end_round()
    server.save(tmp_path / "state")
    object.__setattr__(rule, "angry", False)
    run(server, 1, asked=[0, 1])
    assert server.round == 2


def test_a_step_that_would_overflow_is_not_made():
    server = demoa.Server(np.zeros(D, np.float32), 3, f=1, rule="median", lr=1e30)
    server.begin_round()
    for client in range(3):
        server.submit(client, np.full(D, 1e15, np.float32))
    with pytest.raises(demoa.RoundError, match="would make the parameters infinite"):
        server.end_round()
    np.testing.assert_array_equal(server.parameters, np.zeros(D))
    server.begin_round([])


@pytest.mark.parametrize("clip", ["absolute", "aggregate", "step"])
def test_marina_pp_starts_with_the_first_vectors_that_come(clip):
    server = demoa.Server(np.zeros(D), 3, f=1, rule="median", algorithm=demoa.algorithms.MarinaPP(clip=clip))
    server.begin_round()
    server.end_round()
    server.begin_round()
    for client in range(3):
        server.submit(client, np.ones(D))
    np.testing.assert_allclose(server.end_round().parameters, -0.1 * 0.9 * np.ones(D))


def test_a_full_first_round_must_ask_everyone():
    server = demoa.Server(np.zeros(D), 3, f=1, rule="median")
    with pytest.raises(demoa.ConfigError, match="first round must ask all 3 clients, got 1"):
        server.begin_round([0])
    free = demoa.Server(np.zeros(D), 3, f=1, rule="median", algorithm=demoa.algorithms.Demoa(full_first_round=False))
    free.begin_round([0])
    assert free.end_round().missing == (0,)


def test_the_report_says_who_took_part_and_who_is_stale():
    server = demoa.Server(np.zeros(D), ["a", "b", "c", "e", "d"], f=1, rule="krum", algorithm="hold")
    server.begin_round()
    for name in "abce":
        server.submit(name, np.ones(D))
    first = server.end_round()
    assert first.missing == ("d",)
    assert first.staleness.tolist() == [0, 0, 0, 0, -1]
    server.begin_round(["d", "a"])
    server.submit("d", np.ones(D))
    second = server.end_round()
    assert second.accepted == ("d",)
    assert second.missing == ("a",)
    assert second.staleness.tolist() == [1, 1, 1, 1, 0]
    assert second.weights.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_weights_are_those_of_the_momentum_rows():
    server = demoa.Server(np.zeros(D), 6, f=1, rule=demoa.rules.GeometricMedian(), lr=1.0)
    report = run(server, 5)[-1]
    rows = np.array([server.momentum_of(client) for client in range(6)])
    before = run(demoa.Server(np.zeros(D), 6, f=1, rule="rfa", lr=1.0), 4)[-1].parameters
    np.testing.assert_allclose(before - report.parameters, report.weights @ rows, rtol=1e-12)
    np.testing.assert_allclose(report.weights.sum(), 1.0)


def test_weights_of_rows_that_are_empty_are_reported():
    server = demoa.Server(np.zeros(D), 5, f=0, rule="mean")
    server.begin_round()
    server.submit(0, np.ones(D))
    np.testing.assert_allclose(server.end_round().weights, [0.2] * 5)


def test_weights_of_sampled_only_algorithms_stand_with_their_clients():
    server = demoa.Server(np.zeros(D), 5, f=0, rule="mean", algorithm="fedavg")
    server.begin_round([4, 1])
    for client in (4, 1):
        server.submit(client, np.ones(D))
    np.testing.assert_allclose(server.end_round().weights, [0, 0.5, 0, 0, 0.5])


def test_sampled_only_algorithms_cap_f_and_say_so():
    server = demoa.Server(np.zeros(D), 25, f=5, rule="krum", algorithm="fedavg")
    for count, most in ((25, 5), (9, 3), (3, 0), (1, 0)):
        server.begin_round(range(count))
        for client in range(count):
            server.submit(client, np.random.default_rng(client).standard_normal(D))
        assert server.end_round().f == most


def test_a_bound_that_cannot_hold_is_refused_at_the_start():
    with pytest.raises(demoa.ToleranceError, match="Krum over 5 rows tolerates f from 0 to 1, got f = 2"):
        demoa.Server(np.zeros(D), 5, f=2, rule="krum")
    with pytest.raises(demoa.ToleranceError, match="Mean"):
        demoa.Server(np.zeros(D), 5, f=1, rule="mean")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "krun"}, "unknown rule 'krun'; did you mean 'krum'"),
        ({"mixing": "bucket"}, "unknown mixing 'bucket'; did you mean 'bucketing'"),
        ({"algorithm": "demo"}, "unknown algorithm 'demo'; did you mean 'demoa'"),
        ({"lr": 0.0}, "lr must be a number above 0"),
        ({"momentum": "nobody"}, "momentum must be 'server' or 'client'"),
        ({"norm_limit": -1.0}, "norm_limit must be a number above 0"),
        ({"clients": 0}, "clients must be a whole number, at least 1, got 0"),
        ({"clients": ["a", "a"]}, "clients must be names without duplicates"),
        ({"parameters": np.zeros((2, 2))}, r"shape \(d,\), not empty; got float64 of shape \(2, 2\)"),
        ({"parameters": np.zeros(3, np.int64)}, "got int64"),
        ({"parameters": [0.0]}, "got list"),
        ({"parameters": np.zeros(0)}, "not empty"),
        ({"parameters": np.array([np.nan])}, "parameters must be finite"),
        ({"parameters": torch.zeros(3, device="meta")}, "got Tensor"),
        ({"clients": "abc"}, "clients must be a number of clients, or a list"),
        ({"clients": [1.5, 2.5]}, "clients must be a number of clients, or a list"),
        ({"clients": True}, "clients must be a number of clients, or a list"),
        ({"f": 1.0}, "f must be a whole number, got 1.0"),
        ({"f": True}, "f must be a whole number, got True"),
        ({"f": None}, "f must be a whole number, got None"),
        ({"lr": np.inf}, "lr must be a number above 0"),
        ({"lr": "fast"}, "lr must be a number above 0"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"rule": demoa.rules.Krum}, "rule Krum is a class"),
        ({"rule": None}, "rule must be a name or a Rule, got None"),
        ({"rule": demoa.mixing.Bucketing()}, "rule must be a name or a Rule"),
        ({"rule": "monna"}, "rule monna needs the option pivot"),
        ({"rule": demoa.rules.Monna(pivot=3)}, "pivot must be below the 3 rows"),
        ({"mixing": "clip"}, "mixing clip needs the option radius"),
        ({"mixing": None}, "mixing must be a name or a Mixing"),
        ({"algorithm": demoa.algorithms.Demoa}, "algorithm Demoa is a class"),
        ({"clients": 60, "f": 12, "rule": "smea"}, "use caf"),
        ({"clients": 60, "f": 17, "rule": "mda"}, "at most 16"),
        ({"rule": demoa.rules.Monna(pivot=0), "algorithm": "fedavg"}, "points at one client's row"),
        ({"rule": demoa.rules.Monna(pivot=0), "mixing": "bucketing"}, "points at one client's row"),
    ],
)
def test_bad_settings_get_one_clear_line(options, message):
    settings = {"parameters": np.zeros(D), "clients": 3, "f": 0, "rule": "median", **options}
    with pytest.raises(demoa.ConfigError, match=message) as error:
        demoa.Server(settings.pop("parameters"), settings.pop("clients"), **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_in_tensors_out(dtype):
    kind = getattr(torch, dtype)
    servers = [demoa.Server(start, 4, f=1, rule="cclip") for start in (torch.zeros(D, dtype=kind), np.zeros(D, dtype))]
    vectors = np.random.default_rng(0).standard_normal((4, D)).astype(dtype)
    for server, wrap in zip(servers, (torch.from_numpy, np.asarray), strict=True):
        server.begin_round()
        for client in range(4):
            server.submit(client, wrap(vectors[client]))
    one, other = (server.end_round().parameters for server in servers)
    assert isinstance(one, torch.Tensor)
    assert one.dtype == kind
    np.testing.assert_array_equal(one.numpy(), other)
    one += 1.0
    np.testing.assert_array_equal(servers[0].parameters.numpy(), other)


def test_a_tensor_that_needs_a_gradient_is_accepted():
    server = demoa.Server(torch.zeros(D, requires_grad=True), 3, f=1, rule="median")
    server.begin_round()
    server.submit(0, torch.ones(D, requires_grad=True))
    assert not server.end_round().parameters.requires_grad


def test_parameters_cannot_be_changed_from_outside():
    start = np.zeros(D)
    server = demoa.Server(start, 3, f=1, rule="median")
    start[:] = 5.0
    assert server.parameters.tolist() == [0.0] * D
    with pytest.raises(ValueError, match="read-only"):
        server.parameters[0] = 1.0


def test_vectors_may_come_from_many_threads():
    serial, parallel = (demoa.Server(np.zeros(2000), 32, f=3, rule="cclip") for _ in range(2))
    vectors = np.random.default_rng(0).standard_normal((32, 2000))
    for server in (serial, parallel):
        server.begin_round()
    for client in range(32):
        serial.submit(client, vectors[client])
    threads = [threading.Thread(target=parallel.submit, args=(c, vectors[c])) for c in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(serial.end_round().parameters, parallel.end_round().parameters)


def test_a_byzantine_majority_round_breaks_the_sampled_only_server_and_not_demoa():
    """The point of it all, in ten lines: three liars of ten answer alone."""
    moved = {}
    for name in ("fedavg", "demoa"):
        server = demoa.Server(np.zeros(D), 10, f=3, rule="median", algorithm=name, lr=0.1)
        server.begin_round()
        for client in range(10):
            server.submit(client, np.ones(D) if client >= 3 else -np.ones(D))
        before = server.end_round().parameters
        server.begin_round([0, 1, 2])
        for client in (0, 1, 2):
            server.submit(client, np.full(D, -1000.0))
        moved[name] = float((server.end_round().parameters - before)[0])
    assert moved["fedavg"] == 100.0
    assert -0.1 < moved["demoa"] < 0.0


@pytest.mark.parametrize("rule", ["krum", "rfa", "cclip"])
def test_alignment_is_that_of_the_vectors(rule):
    draw = np.random.default_rng(0)
    server = demoa.Server(np.zeros(40), 9, f=1, rule=rule, mixing="bucketing", lr=0.1)
    for number in range(4):
        server.begin_round(None if number == 0 else [2, 5])
        for client in range(9) if number == 0 else [2, 5]:
            server.submit(client, draw.standard_normal(40))
        report = server.end_round()
        rows = np.array([server.momentum_of(client) for client in range(9)])
        assert report.alignment.square == pytest.approx(report.direction @ report.direction, rel=1e-10)
        np.testing.assert_allclose(report.alignment.products, rows @ report.direction, atol=1e-10)


@pytest.mark.parametrize(("rule", "algorithm"), [("median", "demoa"), ("mean", "demoa"), ("krum", "marina_pp")])
def test_alignment_is_left_out_where_it_would_cost_a_pass(rule, algorithm):
    server = demoa.Server(np.zeros(4), 5, f=0, rule=rule, algorithm=algorithm, lr=0.1)
    server.begin_round()
    for client in range(5):
        server.submit(client, np.full(4, float(client)))
    assert server.end_round().alignment is None


def test_a_report_keeps_the_parameters_of_its_round():
    server = demoa.Server(torch.zeros(3), 3, f=0, rule="mean", algorithm="fedavg", lr=1.0)
    reports = []
    for _ in range(2):
        server.begin_round()
        for client in range(3):
            server.submit(client, torch.ones(3))
        reports.append(server.end_round())
    assert [report.parameters.tolist() for report in reports] == [[-1.0] * 3, [-2.0] * 3]
    reports[1].parameters.zero_()
    assert server.parameters.tolist() == [-2.0] * 3


def test_a_roster_may_change_between_rounds():
    """Whoever stays keeps its momentum and its place in the sums; newcomers start from zero; leavers are forgotten."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((6, 50))
    server = demoa.Server(np.zeros(50), ["a", "b", "c", "d", "e"], f=1, rule="centered_clip", algorithm="demoa", lr=0.1)
    task = server.begin_round()
    for name, vector in zip(task.asked, vectors, strict=False):
        server.submit(name, vector)
    server.end_round()
    held = {name: server.momentum_of(name) for name in server.clients}
    direction = server.parameters.copy()
    with pytest.raises(demoa.ToleranceError):
        server.reseat(["a", "b"])
    server.reseat(["e", "a", "new", "c"])
    assert server.clients == ("e", "a", "new", "c")
    np.testing.assert_array_equal(server.parameters, direction)
    for name in ("e", "a", "c"):
        np.testing.assert_array_equal(server.momentum_of(name), held[name])
    assert not server.momentum_of("new").any()
    server.begin_round(["new"], p=0.5)
    with pytest.raises(demoa.RoundError):
        server.reseat(["a", "b", "c"])
    server.submit("new", vectors[5])
    report = server.end_round()
    assert report.staleness.tolist() == [1, 1, 0, 1]
    # The same round over the same rows, from a server that has never had others.
    rows = np.array([0.55 * held["e"], 0.55 * held["a"], 0.9 * vectors[5], 0.55 * held["c"]])
    for name, row in zip(server.clients, rows, strict=True):
        np.testing.assert_allclose(server.momentum_of(name), row, rtol=1e-12)
    centre = -direction / 0.1
    for _ in range(3):
        gaps = rows - centre
        norms = np.linalg.norm(gaps, axis=1, keepdims=True)
        centre = centre + (gaps * np.minimum(1, 10 / norms)).mean(axis=0)
    np.testing.assert_allclose(report.direction, centre, rtol=1e-10)


def test_a_server_with_another_roster_is_saved_and_loaded(tmp_path):
    def made(names):
        return demoa.Server(np.zeros(3), names, f=0, rule="mean", lr=1.0)

    server = made(["a", "b"])
    server.begin_round()
    server.submit("a", np.ones(3))
    server.end_round()
    server.reseat(["c", "a"])
    server.save(tmp_path / "state")
    assert saved_roster(tmp_path / "state") == ["c", "a"]
    other = made(saved_roster(tmp_path / "state"))
    other.load(tmp_path / "state")
    np.testing.assert_array_equal(other.momentum_of("a"), server.momentum_of("a"))
