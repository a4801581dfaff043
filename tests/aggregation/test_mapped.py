"""Rows in files: a process that is killed in the middle of a write leaves no wrong row behind."""

import json
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import demoa
from demoa.aggregation.stores import Int8, Memmap
from demoa.core.errors import StoreError

ROWS, WIDTH = 6, 150_000


def content(index, version):
    """What a row holds in a version of it: no mixture of two of them looks like a third."""
    return (np.arange(WIDTH, dtype=np.float32) % 97 + 100 * version) * (1 if index % 2 else -1) + index


def write_for_ever(folder, seed):
    """Write rows, and save now and then; for a process that will be killed."""
    draw = random.Random(seed)
    store, versions = Memmap(folder / "rows").make(ROWS, 0, content(0, 0)), [0] * ROWS
    state = folder / "state.json"
    if state.exists():
        saved = json.loads(state.read_text())
        store, versions = store.loaded({**store.arrays(), "place": np.array(saved["place"])}), saved["versions"]
    while True:
        index = draw.randrange(ROWS)
        versions[index] += 1
        store.blend(index, 0.0, 1.0, content(index, versions[index]))
        if draw.random() < 0.1:
            place = store.arrays()["place"].tolist()
            (folder / "part").write_text(json.dumps({"place": place, "versions": versions}))
            os.replace(folder / "part", state)
            store.settle()


def test_a_hundred_kills_leave_no_wrong_row(tmp_path):
    draw = np.random.default_rng(0)
    Memmap(tmp_path / "other").make(ROWS, 0, content(0, 0)).blend(0, 0.0, 1.0, content(0, 1))  # compiles, once for all
    seen, begun, usual = set(), time.monotonic(), 0.0
    for kill in range(100):
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(tmp_path, kill)
            finally:
                os._exit(1)
        while kill == 0 and not (tmp_path / "state.json").exists():
            usual = min(0.2, time.monotonic() - begun)  # how long it takes on this machine to come to something
            time.sleep(0.001)
        time.sleep(draw.uniform(0.005, 0.05 + usual))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the writer ended by itself"
        saved = json.loads((tmp_path / "state.json").read_text())
        empty = Memmap(tmp_path / "rows").make(ROWS, 0, content(0, 0))
        store = empty.loaded({**empty.arrays(), "place": np.array(saved["place"])})
        assert store.planes.lost == ()
        for index, version in enumerate(saved["versions"]):
            expected = content(index, version) if version else np.zeros(WIDTH, np.float32)
            np.testing.assert_array_equal(store.read(index), expected)
            seen.add((index, version))
        del store, empty  # one server at a time has a folder
    assert len(seen) > 20, "the writers came to something"


def made(folder, kind=Memmap):
    rows = np.random.default_rng(0).standard_normal((4, 1000)).astype(np.float32)
    store = kind(folder).make(4, 0, rows[0])
    for index in range(3):
        store.blend(index, 0.0, 1.0, rows[index])
    saved = {name: array.copy() for name, array in store.arrays().items()}
    store.settle()
    return store, saved, rows


@pytest.mark.parametrize("kind", [Memmap, Int8])
def test_a_damaged_row_counts_as_never_received(kind, tmp_path):
    store, saved, _ = made(tmp_path, kind)
    before = [store.read(index) for index in range(4)]
    del store
    path = sorted((tmp_path / "0").glob("s*s.bin" if kind is Int8 else "rows.bin"))[-1]
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 4 + 5] ^= 1  # in row 1
    path.write_bytes(damaged)
    again = kind(tmp_path).make(4, 0, before[0]).loaded(saved)
    assert again.planes.lost == (1,)
    assert not again.read(1).any()
    for index in (0, 2, 3):
        np.testing.assert_array_equal(again.read(index), before[index])


def test_a_row_that_is_newer_than_the_state_and_not_in_the_log_is_lost(tmp_path):
    """As after a power failure, which may lose the log and keep the row."""
    store, saved, rows = made(tmp_path)
    store.blend(1, 0.0, 1.0, rows[3])
    del store
    (log,) = (tmp_path / "0").glob("log-*")
    log.write_bytes(b"")
    again = Memmap(tmp_path).make(4, 0, rows[0]).loaded(saved)
    assert again.planes.lost == (1,)
    np.testing.assert_array_equal(again.read(0), rows[0])


def test_rows_of_an_earlier_run_are_not_written_over(tmp_path):
    store, saved, rows = made(tmp_path)
    del store
    other = Memmap(tmp_path).make(4, 0, rows[0])
    with pytest.raises(StoreError, match="holds the rows of an earlier run; load its state first"):
        other.blend(0, 0.0, 1.0, rows[3])
    np.testing.assert_array_equal(other.loaded(saved).read(0), rows[0])


def test_rows_that_no_saved_state_needs_are_written_over(tmp_path):
    """A run that was killed before it first saved can simply be started again."""
    rows = np.random.default_rng(0).standard_normal((4, 1000)).astype(np.float32)
    Memmap(tmp_path).make(4, 0, rows[0]).blend(0, 0.0, 1.0, rows[0])
    again = Memmap(tmp_path).make(4, 0, rows[0])
    again.blend(1, 0.0, 1.0, rows[1])
    np.testing.assert_array_equal(again.read(0), np.zeros(1000))
    np.testing.assert_array_equal(again.read(1), rows[1])


def test_a_state_whose_rows_are_gone_says_so(tmp_path):
    store, saved, rows = made(tmp_path / "one")
    del store
    with pytest.raises(StoreError, match="the rows of this state are missing"):
        Memmap(tmp_path / "two").make(4, 0, rows[0]).loaded(saved)
    with pytest.raises(StoreError, match="has another size than this server's rows"):
        Memmap(tmp_path / "one").make(5, 0, rows[0]).loaded(saved)


def test_a_folder_is_asked_for():
    with pytest.raises(demoa.ConfigError, match="memmap: folder"):
        Memmap()


def fresh(folder, rows):
    return Memmap(folder).make(4, 0, rows[0])


def test_one_server_at_a_time_has_a_folder(tmp_path):
    rows = np.random.default_rng(0).standard_normal((4, 1000)).astype(np.float32)
    store = fresh(tmp_path, rows)
    store.blend(0, 0.0, 1.0, rows[0])
    with pytest.raises(StoreError, match=r"another server has its rows in .*; stop it, or choose another"):
        fresh(tmp_path, rows).blend(0, 0.0, 1.0, rows[1])
    np.testing.assert_array_equal(store.read(0), rows[0])
    del store
    fresh(tmp_path, rows).blend(0, 0.0, 1.0, rows[1])


def test_a_lost_row_is_named_each_time_until_a_state_is_saved_without_it(tmp_path):
    store, saved, rows = made(tmp_path)
    store.blend(1, 0.0, 1.0, rows[3])
    del store
    (log,) = (tmp_path / "0").glob("log-*")
    log.write_bytes(b"")
    for _ in range(3):
        again = fresh(tmp_path, rows).loaded(saved)
        assert again.planes.lost == (1,)
        del again
    again = fresh(tmp_path, rows).loaded(saved)
    later = {name: array.copy() for name, array in again.arrays().items()}
    again.settle()
    del again
    again = fresh(tmp_path, rows).loaded(later)
    assert again.planes.lost == ()
    assert not again.read(1).any()


@pytest.mark.parametrize("written", [True, False])
def test_rows_of_an_older_state_are_not_mistaken_for_those_of_a_newer_one(written, tmp_path):
    store, older, rows = made(tmp_path)
    if written:
        store.blend(1, 0.0, 1.0, rows[3])
    newer = {name: array.copy() for name, array in store.arrays().items()}
    store.settle()
    del store
    again = fresh(tmp_path, rows).loaded(older)
    assert again.planes.lost == ((1,) if written else ())
    again.blend(2, 0.0, 1.0, rows[3])
    again.arrays()
    again.settle()
    del again
    once_more = fresh(tmp_path, rows).loaded(newer)
    assert once_more.planes.lost == ((1, 2) if written else (2,))
    np.testing.assert_array_equal(once_more.read(0), rows[0])


def test_logs_are_closed(tmp_path):
    store, _, rows = made(tmp_path)
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    for _ in range(20):
        store.blend(0, 0.0, 1.0, rows[1])
        store.arrays()
        store.settle()
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) <= before + 1


def test_a_log_that_cannot_be_written_leaves_row_and_log_as_they_were(tmp_path, monkeypatch):
    store, saved, rows = made(tmp_path)
    write = os.write
    calls = []

    def full(file, content):
        calls.append(1)
        if len(calls) == 1:
            return write(file, content[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.blend(0, 0.0, 1.0, rows[3])
    monkeypatch.undo()
    np.testing.assert_array_equal(store.read(0), rows[0])
    store.blend(1, 0.0, 1.0, rows[3])
    del store
    again = fresh(tmp_path, rows).loaded(saved)
    assert again.planes.lost == ()
    np.testing.assert_array_equal(again.read(1), rows[1])
