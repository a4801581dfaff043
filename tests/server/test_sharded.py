"""A server whose rows are cut over real processes, started by torchrun."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

WORKER = Path(__file__).parent / "sharded_worker.py"
CASES = [
    {"rule": "mean", "f": 0},
    {"rule": "cclip"},
    {"rule": "krum", "mixing": "nnm"},
    {"rule": "rfa", "mixing": "bucketing", "f": 2},
    {"rule": "median"},
    {"rule": "trimmed_mean", "mixing": "arc"},
    {"rule": "bulyan", "f": 2},
    {"rule": "multi_krum", "algorithm": "hold"},
    {"rule": "dnc", "algorithm": "mifa"},
    {"rule": "krum", "algorithm": "marina_pp"},
    {"rule": "cclip", "algorithm": "fedcm"},
    {"rule": "caf", "algorithm": "demoa"},
    {"rule": "multi_krum", "sketch": 512},
]


def torchrun(workers, told):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"]
    return subprocess.run(
        [*command, str(WORKER), json.dumps(told)], capture_output=True, text=True, timeout=200, check=False
    )


def found(workers, **told):
    result = torchrun(workers, told)
    lines = [line for line in result.stdout.splitlines() if line.startswith("found ")]
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(lines[0].removeprefix("found "))


def side_by_side(workers, told):
    """Start workers without torchrun, which ends the others, often before they can tell, when it misses one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(workers)}
    begun = [
        subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(told)],
            env={**os.environ, **place, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(workers)
    ]
    try:
        return [(one.communicate(timeout=200)[0], one.returncode) for one in begun]
    finally:
        for one in begun:
            one.kill()


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        for ours, expected in zip(mine["weights"], theirs["weights"], strict=True):
            if expected is not None:
                np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mine["parameters"], theirs["parameters"], rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def alone():
    return found(1, cases=CASES, rounds=12)


@pytest.mark.parametrize("workers", [2, 4])
def test_several_workers_come_to_what_one_does(workers, alone):
    assert_same(found(workers, cases=CASES, rounds=12), alone)


def test_a_lost_worker_ends_the_run_and_another_number_of_them_goes_on(alone, tmp_path):
    told = {"cases": [{"rule": "cclip"}], "rounds": 6, "save": str(tmp_path / "state"), "then": 12, "die_then": 9}
    *left, (_, killed) = side_by_side(4, told)
    assert killed == -signal.SIGKILL
    for printed, code in left:
        assert code == 3
        assert "error: worker" in printed
        assert "lost another one" in printed
        assert "start all of them again" in printed
    again = found(3, cases=[{"rule": "cclip"}], rounds=12, load=str(tmp_path / "state"))
    assert_same([{**again[0], "weights": []}], [{**alone[1], "weights": []}])
