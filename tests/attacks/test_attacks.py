"""Every attack against its published formula, written on the honest rows."""

from statistics import NormalDist

import numpy as np
import pytest

import demoa
from demoa.attacks import ATTACKS, AttackView, attack
from demoa.attacks.alie import covered_shift
from demoa.attacks.distance_bound import MinMax, MinSum

N, B, D = 12, 3, 40


def federation(seed=0):
    """Return a server after one full round, and the honest rows in it."""
    rows = np.random.default_rng(seed).standard_normal((N, D)) + 1.0
    server = demoa.Server(np.zeros(D), N, f=B, rule="cclip", algorithm="hold", lr=0.5)
    server.begin_round()
    for client in range(N):
        server.submit(client, rows[client])
    server.end_round()
    return server, rows[B:]


def view(server, **changes):
    settings = {
        "round": 2,
        "n": N,
        "byzantine": B,
        "honest": server.inspect(range(B, N)),
        "majority": False,
        "parameters": server.parameters,
        "start": np.full(D, 3.0),
        "lr": 0.5,
        "aggregate": lambda row: server.preview(dict.fromkeys(range(B), row)),
        "generator": np.random.default_rng(5),
        **changes,
    }
    return AttackView(**settings)


def test_alie():
    server, honest = federation()
    z = NormalDist().inv_cdf((N - B - (N // 2 + 1 - B)) / (N - B))
    expected = honest.mean(axis=0) - z * honest.std(axis=0, ddof=1)
    np.testing.assert_allclose(ATTACKS["alie"]().row(view(server)), expected, atol=1e-12)
    shifted = honest.mean(axis=0) - 2 * honest.std(axis=0, ddof=1)
    np.testing.assert_allclose(ATTACKS["alie"](z=2.0).row(view(server)), shifted, atol=1e-12)
    assert covered_shift(25, 5) == pytest.approx(0.2533, abs=1e-4)


def test_ipm():
    server, honest = federation()
    np.testing.assert_allclose(ATTACKS["ipm"]().row(view(server)), -0.1 * honest.mean(axis=0), atol=1e-12)


def test_flips():
    vector = np.arange(4.0)
    np.testing.assert_array_equal(ATTACKS["bit_flip"]().spoil(vector), -vector)
    np.testing.assert_array_equal(ATTACKS["label_flip"]().spoil(vector), vector)
    assert ATTACKS["label_flip"]().flips_labels
    assert np.isinf(ATTACKS["inf"]().spoil(vector)).all()


def test_gaussian():
    server, honest = federation()
    noise = np.random.default_rng(5).standard_normal(D)
    found = ATTACKS["gaussian"](sigma=2.0).row(view(server))
    np.testing.assert_allclose(found, honest.mean(axis=0) + 2 * noise, atol=1e-12)


def sticks_out(honest):
    """Which row has the largest part along the direction in which they differ most."""
    start = np.random.default_rng(5).standard_normal(D)
    centred = honest - honest.mean(axis=0)
    direction = (centred @ start) @ centred  # one power step
    return int(np.argmax(np.abs(centred @ direction)))


def test_mimic_chooses_who_sticks_out_at_first_and_copies_its_row():
    server, honest = federation()
    attack = ATTACKS["mimic"]()
    for seed in range(5):
        first = np.random.default_rng(seed).standard_normal((N - B, D))
        assert attack.target(N - B, first.__getitem__, np.random.default_rng(5)) == sticks_out(first)
    np.testing.assert_array_equal(attack.row(view(server, target=honest[4])), honest[4])
    assert attack.row(view(server)) is None  # nobody has heard from it yet


def test_mimic_may_choose_anew_in_each_round():
    server, honest = federation()
    attack = ATTACKS["mimic"](fixed=False)
    assert attack.target(N - B, None, None) is None
    np.testing.assert_allclose(attack.row(view(server)), honest[sticks_out(honest)], atol=1e-12)


@pytest.mark.parametrize("direction", ["deviation", "mean", "sign"])
def test_min_max_and_min_sum_go_as_far_as_their_bound(direction):
    server, honest = federation()
    squares = ((honest[:, None] - honest[None, :]) ** 2).sum(axis=2)
    for kind, reach, bound in (
        (MinMax, lambda row: ((row - honest) ** 2).sum(axis=1).max(), squares.max()),
        (MinSum, lambda row: ((row - honest) ** 2).sum(), squares.sum(axis=1).max()),
    ):
        row = kind(direction=direction).row(view(server))
        assert reach(row) == pytest.approx(bound, rel=1e-9)
        away = row - honest.mean(axis=0)
        assert reach(honest.mean(axis=0) + 1.001 * away) > bound


@pytest.mark.parametrize("name", ["alie_search", "ipm_search"])
def test_line_searches_find_the_worst_factor(name):
    server, honest = federation()
    before = [server.momentum_of(client) for client in range(N)]
    made = ATTACKS[name]()
    found = made.row(view(server))
    mean = honest.mean(axis=0)
    line = -honest.std(axis=0, ddof=1) if name == "alie_search" else -mean

    def harm(row):
        rows = np.vstack([np.tile(row, (B, 1)), honest])
        centre = (np.zeros(D) - server.parameters) / 0.5  # the aggregate of the round before
        return ((demoa.aggregate(rows, "cclip", f=B, centre=centre) - mean) ** 2).sum()

    best = max((mean + factor * line for factor in made.factors), key=harm)
    np.testing.assert_allclose(found, best, atol=1e-12)
    for client in range(N):
        np.testing.assert_array_equal(server.momentum_of(client), before[client])


def test_shift_back_waits_for_a_majority():
    server, _ = federation()
    made = ATTACKS["shift_back"]()
    assert made.row(view(server)) is None
    row = made.row(view(server, majority=True))
    np.testing.assert_allclose(server.parameters - 0.5 * row, np.full(D, 3.0), atol=1e-12)


def test_no_attack_spoils_nothing():
    assert ATTACKS["none"]().spoil("as it was") == "as it was"
    assert attack.Attack().row(None) is None


def test_bad_options_are_refused():
    for make in (
        lambda: ATTACKS["ipm"](epsilon=0.0),
        lambda: ATTACKS["gaussian"](sigma=-1.0),
        lambda: ATTACKS["alie"](z="much"),
        lambda: ATTACKS["min_max"](direction="up"),
        lambda: ATTACKS["alie_search"](factors=()),
        lambda: ATTACKS["shift_back"](strength=0.0),
    ):
        with pytest.raises(demoa.ConfigError, match="must be"):
            make()
