"""Real processes over TLS on loopback: keys, certificates, lies, and `kill -9` of each kind of process."""

import hashlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

import demoa
from demoa.flower.credentials import make_authority, make_client_key
from demoa.flower.local import LocalDeployment
from demoa.server.state import saved_roster

APP = Path(__file__).parent / "app"
sys.path.insert(0, str(APP))

from plain_app.client import gradient  # noqa: E402


def expected(lines, folder):
    """The parameters after rounds in which just those were taken that an audit names.

    Where ten processes share a core, Flower may lose a reply; the run then goes on without it, and so does this one.
    """
    keys = {name_of_key(folder / "keys" / f"client{client}.pub"): client for client in range(4)}
    median = demoa.algorithms.Demoa(p=1.0)
    server = demoa.Server(np.zeros(6, np.float32), 4, f=1, rule="median", algorithm=median, lr=0.5)
    for line in {line["round"]: line for line in lines}.values():  # a round that was not saved is played again
        task = server.begin_round()
        for client in map(keys.get, line["answered"]):
            server.submit(client, gradient(client, task.parameters))
        server.end_round()
    return server.parameters


def name_of_key(path):
    """What a client is called, by its public key."""
    key = public_key_to_bytes(load_ssh_public_key(path.read_bytes()))
    return hashlib.sha256(key).hexdigest()[:16]


def parameters(lines):
    """What a run printed at its end."""
    (line,) = [line for line in lines if line.startswith("parameters ")]
    return np.frombuffer(bytes.fromhex(line.split()[1]), np.float32)


def audit(folder):
    path = folder / "audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def in_background(deployment, config, rounds):
    """Start a run that will be killed."""
    thread = threading.Thread(target=lambda: list(deployment.run(APP, {**config, "rounds": rounds})), daemon=True)
    thread.start()


def wait_for_round(state, number):
    deadline = time.monotonic() + 120
    while not any(line["round"] >= number for line in audit(state)):
        assert time.monotonic() < deadline, f"round {number} did not come"
        time.sleep(0.05)


def come_back(deployment, start, *clients):
    """Start SuperNodes again until the SuperLink lets them: for a minute, it takes them for clones of the old ones."""
    for client in clients:
        start(client)
    deadline = time.monotonic() + 150
    while not all(deployment.connected(f"client{client}") for client in clients):
        assert time.monotonic() < deadline, "the SuperLink does not let clients back in"
        for client in clients:
            if not deployment.running(f"client{client}"):
                start(client)
        time.sleep(0.5)


def test_keys_lies_and_kills(tmp_path):
    state = tmp_path / "state"
    config = {"clients": 4, "folder": str(state), "timeout": 20.0}
    draw = np.random.default_rng(0)
    with LocalDeployment(tmp_path / "deploy") as deployment:

        def start(client):
            deployment.add_client(f"client{client}", client, {"attack": "nan"} if client == 0 else {})

        def play(rounds):
            """Play up to a round, and compare with a server that took the same replies."""
            lines = list(deployment.run(APP, {**config, "rounds": rounds}, timeout=240))
            found = expected(audit(state), deployment.folder)
            np.testing.assert_array_equal(parameters(lines), found, err_msg="\n".join(lines[-30:]))
            assert sorted({line["round"] for line in audit(state)}) == list(range(1, rounds + 1))
            assert len(saved_roster(state / "state.safetensors")) == 4
            assert {reason for line in audit(state) for reason in line["refused"].values()} == {"not_finite"}
            assert all(len(line["answered"]) <= 3 for line in audit(state))

        for client in range(4):
            start(client)
        # Who has no registered key, does not trust the CA, or has the key of one that is there, gets no row.
        stranger, _ = make_client_key(tmp_path / "strange", "stranger")
        deployment.start_client("stranger", 7, stranger)
        make_authority(tmp_path / "other")
        deployment.start_client("lost", 8, tmp_path / "deploy" / "keys" / "client1", tmp_path / "other" / "ca.crt")
        play(2)
        for name in ("stranger", "lost"):
            deployment.stop(name)
        deployment.start_client("clone", 9, tmp_path / "deploy" / "keys" / "client2")

        in_background(deployment, config, 99)
        wait_for_round(state, 3 + draw.integers(3))
        for client in (1, 3):
            deployment.stop(f"client{client}", kill=True)
        os.kill(deployment.serverapp_pids()[-1], signal.SIGKILL)
        come_back(deployment, start, 1, 3)
        play(7)

        in_background(deployment, config, 99)
        wait_for_round(state, 8 + draw.integers(3))
        deployment.stop("superlink", kill=True)
        deployment.start_superlink()
        play(12)
        assert len(audit(state)[-1]["answered"]) == 3  # all honest clients are back
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in read(path)]
    assert left == []


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
