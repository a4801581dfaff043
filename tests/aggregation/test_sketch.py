"""Inner products from sketches: how wrong they are, and that everything else goes on as it does with exact ones."""

import numpy as np
import pytest

import demoa
from demoa.aggregation.kernels.sketching import sketch
from demoa.aggregation.sketch import Sketches
from demoa.aggregation.stores import DenseStore

SIZE = 64


def vectors(kind, width=1000):
    draw = np.random.default_rng(4)
    x, y = draw.standard_normal((2, width))
    if kind == "alike":
        y = x + 0.1 * y
    elif kind == "few numbers":
        x[20:], y[20:] = 0.0, 0.0
    elif kind == "one in 64":  # places that signs and turns must treat no worse than others
        x[np.arange(width) % 64 != 5] = 0.0
        y = x.copy()
    return x, y


@pytest.mark.parametrize("kind", ["apart", "alike", "few numbers", "one in 64"])
def test_inner_products_are_right_on_average_and_spread_no_more_than_they_may(kind):
    x, y = vectors(kind)
    draws = 4000
    found = np.array([sketch(x, 0, SIZE, key) @ sketch(y, 0, SIZE, key) for key in range(draws)])
    most = np.sqrt((x @ x * (y @ y) + (x @ y) ** 2) / SIZE)
    assert abs(found.mean() - x @ y) <= 4 * most / np.sqrt(draws)
    assert found.std() <= 1.1 * most


def test_sketches_of_pieces_add_up_to_that_of_the_whole():
    x, _ = vectors("apart")
    whole = sketch(x, 0, 48, 9)
    for cut in (1, 47, 48, 64, 65, 500, 999):
        np.testing.assert_allclose(sketch(x[:cut], 0, 48, 9) + sketch(x[cut:], cut, 48, 9), whole, atol=1e-12)


def test_a_table_from_sketches_is_a_table_of_some_rows():
    rows = np.random.default_rng(0).standard_normal((20, 500))
    table = Sketches(DenseStore(rows), 16, 0).gram(np.arange(20))
    np.testing.assert_array_equal(table, table.T)
    assert np.linalg.eigvalsh(table).min() >= -1e-9


def test_distances_come_out_within_the_share_that_is_said():
    rows = np.random.default_rng(0).standard_normal((100, 3000))
    exact = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    for size in (128, 512):
        table = Sketches(DenseStore(rows), size, 1).gram(np.arange(100))
        found = np.diag(table)[:, None] + np.diag(table) - 2 * table
        upper = np.triu_indices(100, 1)
        wrong = found[upper] / exact[upper] - 1
        assert np.sqrt(np.mean(wrong**2)) == pytest.approx(np.sqrt(2 / size), rel=0.25)


def test_another_seed_is_another_projection():
    row = np.random.default_rng(0).standard_normal((1, 300))
    one, other = (Sketches(DenseStore(row), 32, seed).gram(np.array([0])) for seed in (0, 1))
    assert one != other


def played(rounds, *, size=128, clients=150, server=None, rule="krum", store="dense"):
    """Return a server after some rounds; the first fifth of the clients lies."""
    if server is None:
        algorithm = demoa.algorithms.Demoa(p=0.1, full_first_round=False)
        start = np.zeros(400, np.float32)
        f = clients // 5
        server = demoa.Server(
            start, clients, f=f, rule=rule, algorithm=algorithm, lr=0.1, sketch=size, seed=7, store=store
        )
    while server.round < rounds:
        draw = np.random.default_rng([5, server.round])
        task = server.begin_round(draw.choice(clients, clients // 5, replace=False).tolist())
        for client in task.asked:
            honest = 1 + draw.standard_normal(400)
            server.submit(client, (-5 * honest if client < clients // 5 else honest).astype(np.float32))
        server.end_round()
    return server


@pytest.mark.parametrize("rule", ["krum", "multi_krum", "rfa", "cclip"])
def test_rules_stand_liars_on_it(rule):
    server = played(60, rule=rule)
    assert (np.asarray(server.parameters) < 0).mean() > 0.9  # downhill, for gradients around one


@pytest.mark.parametrize("store", ["dense", "int8"])
@pytest.mark.parametrize("clients", [20, 150])
def test_a_resumed_server_goes_on_bit_for_bit(clients, store, tmp_path):
    straight = played(40, clients=clients, store=store)
    played(17, clients=clients, store=store).save(tmp_path / "state")
    again = played(0, clients=clients, store=store)
    again.load(tmp_path / "state")
    np.testing.assert_array_equal(played(40, clients=clients, server=again).parameters, straight.parameters)


def test_rows_keep_their_sketches_when_the_roster_changes():
    """A server that has had another roster goes on as one that has not: sketches belong to rows, not to places."""
    server, other = played(20, clients=150), played(20, clients=150)
    server.reseat([*range(149, -1, -1)])
    server.reseat([*range(150)])
    np.testing.assert_array_equal(played(40, server=server).parameters, played(40, server=other).parameters)


def test_a_state_of_another_sketch_is_refused(tmp_path):
    played(3).save(tmp_path / "state")
    with pytest.raises(demoa.StoreError, match="sketch = 128, this one has 64"):
        played(0, size=64).load(tmp_path / "state")


@pytest.mark.parametrize("size", [0, -1, 1.5, "many"])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(demoa.ConfigError, match="sketch"):
        played(0, size=size)
