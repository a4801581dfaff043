"""Many clients: rounds that look only at the rows that changed come to what a look at all of them would."""

import numpy as np
import pytest

import demoa
from demoa.aggregation import cache, lookup
from demoa.aggregation.stores import DenseStore

N, D, K = 300, 700, 9


def played(rounds, rule, *, seed=0, tau=None, store="dense", until=None, server=None, p=0.03, loud=()):
    """Return a server after some rounds, and its reports; clients in `loud` send vectors a hundred times as long."""
    if server is None:
        made = demoa.rules.CenteredClip(tau=tau) if tau else rule
        algorithm = demoa.algorithms.Demoa(p=p, full_first_round=False)
        f = 0 if rule == "mean" else 60
        server = demoa.Server(np.zeros(D, np.float32), N, f=f, rule=made, algorithm=algorithm, lr=0.1, store=store)
    reports = []
    while server.round < rounds:
        draw = np.random.default_rng([seed, server.round])
        task = server.begin_round(draw.choice(N, K, replace=False).tolist())
        for client in task.asked:
            vector = (1 + draw.standard_normal(D)).astype(np.float32)
            server.submit(client, vector * (100 if client in loud else 1))
        reports.append(server.end_round())
    return server, reports


@pytest.fixture
def all_rows(monkeypatch):
    """Switch to looking at all rows in every round."""

    def switch():
        for module in (cache, lookup):
            monkeypatch.setattr(module, "MANY", 10**9)

    return switch


@pytest.mark.parametrize(
    ("rule", "tau", "loud"),
    [
        ("mean", None, ()),
        ("cclip", 30.0, ()),
        ("cclip", 30.0, range(0, N, 20)),  # one in twenty is clipped
        ("cclip", 5.0, range(0, N, 3)),  # most fresh rows are
        ("cclip", 0.01, ()),  # everyone is
        ("krum", None, range(0, N, 20)),
    ],
)
def test_a_look_at_what_changed_is_as_good_as_a_look_at_all(rule, tau, loud, all_rows):
    quick, reports = played(150, rule, tau=tau, loud=loud)
    all_rows()
    slow, expected = played(150, rule, tau=tau, loud=loud)
    np.testing.assert_allclose(quick.parameters, slow.parameters, rtol=0, atol=2e-5 * np.abs(slow.parameters).max())
    for one, other in zip(reports, expected, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, rtol=2e-5, atol=1e-12)
        assert one.notes.get("clipped") == other.notes.get("clipped")


def test_rows_that_cannot_be_clipped_are_not_read(monkeypatch):
    read = []
    inner = DenseStore.inner
    monkeypatch.setattr(DenseStore, "inner", lambda self, v, chosen: read.append(len(chosen)) or inner(self, v, chosen))
    monkeypatch.setattr(DenseStore, "gram", lambda self, fresh: pytest.fail("the table is not needed"))
    loud = range(0, N, 50)
    played(60, "cclip", tau=40.0, loud=loud)
    assert max(read) <= 2 * len(loud) + 3 * K
    assert sum(read) > 0


def test_a_running_combination_keeps_its_digits():
    """After thousands of changes, with rows that come and go at very different lengths."""
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((200, 50))
    held = cache.RowCache(DenseStore(rows.copy()), stale=range(200))
    weights = np.full(200, 1 / 200)
    for number in range(3000):
        index = int(draw.integers(200))
        vector = draw.standard_normal(50) * 10.0 ** draw.integers(-3, 9)
        rows[index] = 0.5 * rows[index] + vector
        held.blend(index, 0.5, 1.0, vector)
        weights *= 0.999
        weights[index] = 1 / 200
        if number % 7 == 0:
            exact = weights @ rows
            assert np.linalg.norm(held.combine(weights) - exact) <= 1e-9 * np.linalg.norm(exact)


def test_it_is_added_up_anew_now_and_then(monkeypatch):
    full = []
    accumulate = DenseStore.accumulate

    def counted(self, total, factor, weights):
        full.append(total is None)
        return accumulate(self, total, factor, weights)

    monkeypatch.setattr(DenseStore, "accumulate", counted)
    played(100, "mean")
    assert 100 * K / N - 1 <= sum(full) <= 100 * K / N + 2
    assert len(full) > 600


@pytest.mark.parametrize("rule", ["mean", "cclip", "krum", "median"])
def test_a_resumed_server_goes_on_bit_for_bit(rule, tmp_path):
    straight, _ = played(60, rule)
    stopped, _ = played(23, rule)
    stopped.save(tmp_path / "state")
    again, _ = played(0, rule)
    again.load(tmp_path / "state")
    played(60, rule, server=again)
    np.testing.assert_array_equal(again.parameters, straight.parameters)


@pytest.mark.parametrize("store", ["dense", "int8"])
@pytest.mark.parametrize("tau", [25.0, 5.0, 0.5])
def test_what_was_known_of_rows_is_not_needed_to_go_on_bit_for_bit(tau, store, tmp_path):
    """After a load nothing is known of how far rows were, so that more of them are looked at: to the same end."""
    loud = range(0, N, 10)
    straight, _ = played(40, "cclip", tau=tau, store=store, loud=loud)
    stopped, _ = played(17, "cclip", tau=tau, store=store, loud=loud)
    stopped.save(tmp_path / "state")
    again, _ = played(0, "cclip", tau=tau, store=store, loud=loud)
    again.load(tmp_path / "state")
    played(40, "cclip", server=again, loud=loud)
    np.testing.assert_array_equal(again.parameters, straight.parameters)


@pytest.mark.parametrize(("rule", "table"), [("cclip", False), ("krum", True)])
def test_a_saved_state_holds_a_table_only_where_one_was_asked_for(rule, table, tmp_path):
    played(5, rule)[0].save(tmp_path / "state")
    assert ((tmp_path / "state").stat().st_size > 8 * N * N + 4 * N * D) == table
