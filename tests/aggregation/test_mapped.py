"""Rows in files: a process that is killed in the middle of a write leaves no wrong row behind."""

import json
import os
import random
import signal
import time

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
    (log,) = (tmp_path / "0").glob("log-*")
    log.write_bytes(b"")
    again = Memmap(tmp_path).make(4, 0, rows[0]).loaded(saved)
    assert again.planes.lost == (1,)
    np.testing.assert_array_equal(again.read(0), rows[0])


def test_rows_of_an_earlier_run_are_not_written_over(tmp_path):
    _, saved, rows = made(tmp_path)
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
    _, saved, rows = made(tmp_path / "one")
    with pytest.raises(StoreError, match="the rows of this state are missing"):
        Memmap(tmp_path / "two").make(4, 0, rows[0]).loaded(saved)
    with pytest.raises(StoreError, match="has another size than this server's rows"):
        Memmap(tmp_path / "one").make(5, 0, rows[0]).loaded(saved)


def test_a_folder_is_asked_for():
    with pytest.raises(demoa.ConfigError, match="memmap: folder"):
        Memmap()
