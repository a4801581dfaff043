"""Servers whose rows are in files or in fewer bytes."""

import numpy as np
import pytest

import demoa
from demoa.aggregation.stores import STORES, Bfloat16, Dense, Int8, Memmap, TopK

N, D = 8, 3000
ROUNDS = 40


def server_with(store, rule="cclip", algorithm="demoa"):
    return demoa.Server(np.zeros(D, np.float32), N, f=2, rule=rule, algorithm=algorithm, lr=0.2, store=store)


def play(server, until):
    while server.round < until:
        draw = np.random.default_rng(server.round)
        task = server.begin_round(None if server.round == 0 else np.flatnonzero(draw.random(N) < 0.4).tolist())
        for client in task.asked:
            lie = -5.0 if client < 2 else 1.0
            pull = np.array(server.parameters) - np.linspace(-1, 1, D)
            server.submit(client, (lie * pull + 0.1 * draw.standard_normal(D)).astype(np.float32))
        server.end_round()
    return server


@pytest.mark.parametrize("rule", ["cclip", "krum", "rfa", "median", "bulyan"])
def test_rows_in_a_file_give_the_bits_of_rows_in_memory(rule, tmp_path):
    server, other = (
        demoa.Server(np.zeros(D, np.float32), N, f=1, rule=rule, lr=0.2, store=store)
        for store in ("dense", Memmap(tmp_path))
    )
    play(server, ROUNDS)
    play(other, ROUNDS)
    np.testing.assert_array_equal(server.parameters, other.parameters)


@pytest.mark.parametrize("algorithm", ["demoa", "marina_pp", "fedcm"])
@pytest.mark.parametrize("kind", [Bfloat16, Int8])
def test_fewer_bytes_cost_little(kind, algorithm):
    exact = play(server_with("dense", algorithm=algorithm), ROUNDS)
    rounded = play(server_with(kind(), algorithm=algorithm), ROUNDS)
    off = np.linalg.norm(np.array(rounded.parameters) - exact.parameters) / np.linalg.norm(exact.parameters)
    assert 0 < off < 0.02


def test_the_largest_of_all_numbers_are_all_numbers():
    exact, kept = play(server_with("dense"), ROUNDS), play(server_with(TopK(share=1.0)), ROUNDS)
    np.testing.assert_array_equal(kept.parameters, exact.parameters)


KINDS = {
    "memmap": lambda folder: Memmap(folder),
    "bfloat16": lambda folder: Bfloat16(),
    "int8": lambda folder: Int8(),
    "int8, mapped": lambda folder: Int8(folder),
    "top_k": lambda folder: TopK(),
    "top_k, mapped": lambda folder: TopK(folder),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_crash_after_a_save_is_undone(name, tmp_path):
    """Rounds that were played after the state was saved leave no trace, although they wrote to the same files."""
    kind, rows, state = KINDS[name], tmp_path / "rows", tmp_path / "state"
    straight = play(server_with(kind(tmp_path / "other")), ROUNDS)
    server = play(server_with(kind(rows)), 12)
    server.save(state)
    play(server, 19)
    del server  # and here the process dies
    again = server_with(kind(rows))
    again.load(state)
    assert again.round == 12
    play(again, 25)
    again.save(state)
    del again
    once_more = server_with(kind(rows))
    once_more.load(state)
    np.testing.assert_array_equal(play(once_more, ROUNDS).parameters, straight.parameters)


@pytest.mark.parametrize("clients", [N, 140])
@pytest.mark.parametrize("rule", ["krum", "mean"])
def test_a_row_that_is_lost_counts_as_never_received_for_all_that_is_known(rule, clients, tmp_path):
    """Table, running sums and rows agree that it is zero."""

    def made(store):
        algorithm = demoa.algorithms.Demoa(p=0.5, full_first_round=False)
        return demoa.Server(np.zeros(D, np.float32), clients, f=0, rule=rule, algorithm=algorithm, store=store)

    def round_of(server, asked):
        server.begin_round(asked)
        for client in asked:
            server.submit(client, np.random.default_rng([server.round, client]).standard_normal(D).astype(np.float32))
        return server.end_round()

    server = made(Memmap(tmp_path / "rows"))
    round_of(server, range(clients))
    server.save(tmp_path / "state")
    del server
    path = tmp_path / "rows" / "0" / "rows.bin"
    damaged = bytearray(path.read_bytes())
    damaged[3 * 4 * D + 8] ^= 1  # in row 3
    path.write_bytes(damaged)
    again, other = made(Memmap(tmp_path / "rows")), made("dense")
    again.load(tmp_path / "state")
    assert again.lost == (3,)
    assert not again.momentum_of(3).any()
    round_of(other, [client for client in range(clients) if client != 3])
    report, expected = round_of(again, [1, 2]), round_of(other, [1, 2])
    assert report.staleness[3] == expected.staleness[3] == -1
    np.testing.assert_allclose(report.weights, expected.weights, rtol=1e-9)
    np.testing.assert_allclose(report.direction, expected.direction, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_clients_may_come_and_go(name, tmp_path):
    server = play(server_with(KINDS[name](tmp_path)), 10)
    kept = server.momentum_of(3)
    server.reseat([*range(1, N), "new"])
    np.testing.assert_allclose(server.momentum_of(3), kept, rtol=0, atol=1e-2 * np.abs(kept).max())
    assert not server.momentum_of("new").any()
    server.save(tmp_path / "state")


def test_a_state_belongs_to_a_kind_of_store(tmp_path):
    play(server_with(Int8()), 3).save(tmp_path / "state")
    with pytest.raises(demoa.StoreError, match="store"):
        server_with("dense").load(tmp_path / "state")


def test_names_and_options():
    assert set(STORES) == {"bfloat16", "dense", "int8", "memmap", "top_k"}
    with pytest.raises(demoa.ConfigError, match="did you mean 'int8'"):
        server_with("int4")
    with pytest.raises(demoa.ConfigError, match="int8: block"):
        Int8(block=0)
    with pytest.raises(demoa.ConfigError, match="top_k: share"):
        TopK(share=0.0)


@pytest.mark.parametrize("kind", [Bfloat16, Int8, TopK])
def test_numbers_that_fewer_bytes_cannot_hold_are_refused(kind):
    server = demoa.Server(np.zeros(4), 5, f=1, rule="krum", store=kind())
    task = server.begin_round()
    with pytest.raises(demoa.UpdateRejected, match="norm"):
        server.submit(0, np.array([1e40, 1.0, 1.0, 1.0]))
    for client in task.asked[1:]:
        server.submit(client, np.ones(4))
    assert np.isfinite(server.end_round().parameters).all()


@pytest.mark.parametrize("kind", [Dense, Bfloat16, Int8, TopK])
def test_a_preview_and_a_new_roster_leave_rows_as_they_were_to_the_bit(kind):
    server = play(server_with(kind()), 5)
    before = {name: array.copy() for name, array in server._state.cache.store.arrays().items()}
    server.preview({1: np.ones(D, np.float32), 2: np.zeros(D, np.float32)})
    for name, array in server._state.cache.store.arrays().items():
        np.testing.assert_array_equal(array, before[name])
    server.reseat([*range(N)])
    for name, array in server._state.cache.store.arrays().items():
        np.testing.assert_array_equal(array, before[name])
