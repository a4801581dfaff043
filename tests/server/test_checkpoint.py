"""Saved states: bit-exact, whole or not at all, and refused when they are not what they should be."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import demoa
from demoa.server import checkpoint
from tests.server.test_server import D, run


def make(**options):
    settings = {"f": 1, "rule": "centered_clip", "mixing": "bucketing", "seed": 3, **options}
    return demoa.Server(np.zeros(D), 9, **settings)


@pytest.mark.parametrize("rule", ["centered_clip", "median", "krum"])
@pytest.mark.parametrize("algorithm", sorted(demoa.algorithms.ALGORITHMS))
def test_a_loaded_server_goes_on_bit_for_bit(tmp_path, algorithm, rule):
    straight = make(algorithm=algorithm, rule=rule)
    run(straight, 6)
    straight.save(tmp_path / "state")
    resumed = make(algorithm=algorithm, rule=rule)
    resumed.load(tmp_path / "state")
    assert resumed.round == 6
    for one, other in zip(run(straight, 9, seed=1), run(resumed, 9, seed=1), strict=True):
        np.testing.assert_array_equal(one.parameters, other.parameters)
        np.testing.assert_array_equal(one.staleness, other.staleness)
    for client in straight.clients:
        np.testing.assert_array_equal(straight.momentum_of(client), resumed.momentum_of(client))


def test_tensors_and_names_survive(tmp_path):
    def server():
        return demoa.Server(torch.zeros(D), ["x", "y", "z"], f=1, rule="median")

    one, other = server(), server()
    one.begin_round()
    one.submit("x", torch.ones(D))
    one.end_round()
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    assert torch.equal(one.parameters, other.parameters)
    assert isinstance(other.momentum_of("x"), torch.Tensor)


def saved(tmp_path):
    server = make()
    run(server, 4)
    path = tmp_path / "state"
    server.save(path)
    return path


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path):
    path.write_bytes(b"")


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(bytes(content))


def other_format(path):
    path.write_text("round,client\n1,2\n")


def foreign_tensors(path):
    save_file({"weight": np.zeros(3)}, path)


def rewrite(path, change):
    """Write the file again, whole and with right checksums, with something else in it."""
    header, arrays = checkpoint.read(path)
    change(header, arrays)
    checkpoint.write(path, header, arrays)


def newer_version(path):
    content = load_file(path)
    envelope = {"format": checkpoint.FORMAT, "version": checkpoint.VERSION + 1}
    save_file(content, path, metadata={"demoa": f"0 {json.dumps(envelope)}"})


def edited_header(path):
    content = path.read_bytes()
    edited = content.replace(b'\\"round\\": 4', b'\\"round\\": 9')
    assert edited != content
    path.write_bytes(edited)


def missing_array(path):
    rewrite(path, lambda header, arrays: arrays.pop("products"))


def missing_rows(path):
    rewrite(path, lambda header, arrays: arrays.pop("store.rows"))


def missing_key(path):
    rewrite(path, lambda header, arrays: header.pop("stale"))


def wrong_shape(path):
    rewrite(path, lambda header, arrays: arrays.update(scale=np.ones(3)))


def negative_round(path):
    rewrite(path, lambda header, arrays: header.update(round=-5))


def stale_row_that_is_not_there(path):
    rewrite(path, lambda header, arrays: header.update(stale=[99]))


def not_finite(path):
    rewrite(path, lambda header, arrays: arrays.update(scale=np.full(9, np.nan)))


def gone(path):
    path.unlink()


BROKEN = {
    truncate: "truncated",
    empty: "truncated",
    flip_a_bit: "wrong checksum of its arrays",
    edited_header: "wrong checksum of its header",
    missing_key: "does not hold the state of a server",
    negative_round: "does not hold the state of a server",
    stale_row_that_is_not_there: "does not hold the state of a server",
    not_finite: "does not hold the state of a server",
    other_format: "not a state saved by demoa",
    foreign_tensors: "not a state of a demoa server",
    newer_version: "format version 2, this demoa reads 1",
    missing_array: "no array 'products'",
    missing_rows: "no array 'rows'",
    wrong_shape: "needs float64 \\(9,\\)",
    gone: "no saved state",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_broken_files_are_refused_and_the_old_state_stays(tmp_path, damage):
    path = saved(tmp_path)
    damage(path)
    server, twin = make(), make()
    run(server, 2)
    run(twin, 2)
    with pytest.raises(demoa.StoreError, match=BROKEN[damage]) as error:
        server.load(path)
    assert "\n" not in str(error.value)
    for one, other in zip(run(server, 3), run(twin, 3), strict=True):
        np.testing.assert_array_equal(one.parameters, other.parameters)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "median"},
        {"f": 2},
        {"mixing": ()},
        {"algorithm": "hold"},
        {"algorithm": demoa.algorithms.Demoa(alpha=0.5)},
        {"rule": demoa.rules.CenteredClip(tau=1.0)},
        {"seed": 4},
        {"momentum": "client"},
    ],
)
def test_a_state_of_another_setting_is_refused(tmp_path, options):
    path = saved(tmp_path)
    with pytest.raises(demoa.StoreError, match="was saved by a server with"):
        make(**options).load(path)


def test_no_saving_in_the_middle_of_a_round(tmp_path):
    server = make()
    server.begin_round()
    for work in (server.save, server.load):
        with pytest.raises(demoa.RoundError, match="round 1 is open"):
            work(tmp_path / "state")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = saved(tmp_path)
    before = path.read_bytes()
    server = make()
    with pytest.raises(demoa.StoreError, match="cannot write"):
        server.save(tmp_path / "no such folder" / "state")
    (tmp_path / "folder").mkdir()
    with pytest.raises(demoa.StoreError, match="cannot write"):
        server.save(tmp_path / "folder")
    assert path.read_bytes() == before
    assert sorted(child.name for child in tmp_path.iterdir()) == ["folder", "state"]


@pytest.mark.parametrize("path", ["", "/", "a\0b", "x" * 5000, None, 7])
def test_names_that_cannot_be_a_file_are_refused(path):
    for work in (make().save, make().load):
        with pytest.raises(demoa.StoreError, match="cannot be the path"):
            work(path)


def test_a_device_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(demoa.StoreError, match="it is not a file"):
        make().save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_settings_from_numpy_can_be_saved(tmp_path):
    def server(one):
        return demoa.Server(
            np.zeros(D),
            np.arange(5) if one else 5,
            f=np.int64(1) if one else 1,
            rule="median",
            seed=np.int64(3) if one else 3,
            algorithm=demoa.algorithms.Demoa(alpha=np.float64(0.5) if one else 0.5),
        )

    server(one=True).save(tmp_path / "state")
    plain = server(one=False)
    plain.load(tmp_path / "state")
    assert plain.clients == (0, 1, 2, 3, 4)


def test_the_step_size_may_change_on_the_way(tmp_path):
    path = saved(tmp_path)
    server = make(lr=5.0, norm_limit=7.0)
    server.load(path)
    assert (server.round, server.lr) == (4, 5.0)


def test_no_pickle_is_needed_to_read_a_state(tmp_path):
    arrays = load_file(saved(tmp_path))
    assert {array.dtype.kind for array in arrays.values()} <= {"f", "i", "u"}


SAVER = """
    import sys, numpy as np, demoa
    server = demoa.Server(np.zeros(200_000), 9, f=1, rule="krum")
    server.begin_round()
    for client in range(9):
        server.submit(client, np.random.default_rng(client).standard_normal(200_000))
    server.end_round()
    print("ready", flush=True)
    while True:
        server.save(sys.argv[1])
        server.begin_round([0])
        server.end_round()
"""


def test_a_killed_process_leaves_a_whole_file(tmp_path):
    """kill -9 in the middle of saving, several times: what is there can always be loaded."""
    path = tmp_path / "state"
    random = np.random.default_rng(0)
    seen = []
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SAVER), path], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout.readline() == "ready\n"
            while not path.exists():
                assert process.poll() is None
            process.stdout.close()
            time.sleep(random.uniform(0.0, 0.2))
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        server = demoa.Server(np.zeros(200_000), 9, f=1, rule="krum")
        server.load(path)
        seen.append(server.round)
    assert min(seen) >= 1


def test_paths_may_be_text_or_path(tmp_path):
    server = make()
    server.save(str(tmp_path / "one"))
    server.load(Path(tmp_path / "one"))
    assert server.round == 0
