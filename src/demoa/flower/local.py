"""A whole deployment on this machine: a SuperLink with TLS that asks for keys, SuperNodes with keys, and their runs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from demoa.core.errors import ConfigError
from demoa.flower.credentials import make_authority, make_client_key

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "OMP_NUM_THREADS": "1",
}
NAME = "here"
"""What the SuperLink is called in Flower's configuration."""


class LocalDeployment:
    """Processes of Flower on 127.0.0.1, on free ports, that end with the block that they were started in.

    Everything is in one folder: tls/, keys/, home/ (Flower's own), link.db, and a log per process.
    """

    def __init__(self, folder: Path, *, database: bool = True, simulation: bool = False) -> None:
        """Take the folder; what an earlier deployment left in it (certificates, keys, database) is used again.

        Args:
            folder: Where everything is.
            database: Whether the SuperLink keeps its state in a file, and so knows its clients again when it is started
                anew. Its SQLite gives up on writes where ten clients share two cores.
            simulation: Let the SuperLink simulate its clients; it then has neither TLS nor keys, and nobody may join.
        """
        self.folder = folder.resolve()
        self._database = ["--database", str(self.folder / "link.db")] if database else []
        self._simulation = simulation
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._log_begins: dict[str, int] = {}
        self._port = _free_port(self.folder / "port")
        self._environment = {
            **os.environ,
            **QUIET,
            "FLWR_HOME": str(self.folder / "home"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }

    def __enter__(self) -> LocalDeployment:
        if not (self.folder / "tls" / "ca.crt").exists():
            make_authority(self.folder / "tls")
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "{NAME}"\n\n[superlink.{NAME}]\naddress = "{self.address}"\n'
            + ("insecure = true\n" if self._simulation else f"root-certificates = {json.dumps(str(self.authority))}\n")
        )
        self.start_superlink()
        return self

    def __exit__(self, *error: object) -> None:
        for name in reversed(list(self._processes)):
            self.stop(name)

    @property
    def address(self) -> str:
        """Where the SuperLink listens."""
        return f"127.0.0.1:{self._port}"

    @property
    def authority(self) -> Path:
        """The certificate of the CA."""
        return self.folder / "tls" / "ca.crt"

    def pid(self, name: str) -> int:
        """Return the id of a process, such as "superlink" or "client3"."""
        return self._processes[name].pid

    def running(self, name: str) -> bool:
        """Return whether a process that was started has not ended."""
        return self._processes[name].poll() is None

    def connected(self, name: str) -> bool:
        """Return whether a client that was started has been let in by the SuperLink."""
        return b"SuperNode ID" in (self.folder / f"{name}.log").read_bytes()[self._log_begins[name] :]

    def serverapp_pids(self) -> list[int]:
        """Return the ids of the processes that play the server's side of runs, the newest last."""
        family = _descendants(self.pid("superlink"))
        return sorted(pid for pid in family if any(word.endswith("flwr-serverapp") for word in _words(pid)))

    def start_superlink(self) -> None:
        """Start the SuperLink, and wait until it listens."""
        tls = self.folder / "tls"
        secured = [
            *("--ssl-ca-certfile", str(tls / "ca.crt"), "--ssl-certfile", str(tls / "server.crt")),
            *("--ssl-keyfile", str(tls / "server.key"), "--enable-supernode-auth"),
        ]
        self._start(
            "superlink",
            *("flower-superlink", "--host", "127.0.0.1", "--port", str(self._port)),
            *(["--insecure", "--simulation"] if self._simulation else secured),
            *self._database,
            "--disable-runtime-dependency-installation",
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            if self._processes["superlink"].poll() is not None:
                break
            time.sleep(0.1)
        raise ConfigError(f"the SuperLink does not start; see {self.folder / 'superlink.log'}")

    def add_client(self, name: str, partition: int, config: Mapping[str, Any] | None = None) -> None:
        """Make a key for a client, if it has none, register it, and start its SuperNode, with a configuration."""
        private, public = self.folder / "keys" / name, self.folder / "keys" / f"{name}.pub"
        is_new = not private.exists()
        if is_new:
            make_client_key(self.folder / "keys", name)
        if is_new or not self._database:
            self._call("flwr", "supernode", "register", str(public), NAME, "--name", name)
        self.start_client(name, partition, private, config=config)

    def start_client(
        self,
        name: str,
        partition: int,
        key: Path,
        authority: Path | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Start a SuperNode with a key, whether it is registered or not."""
        settings = _settings({"partition-id": partition, **(config or {})})
        self._start(
            name,
            *("demoa-supernode", "--superlink", self.address, "--port", str(_free_port())),
            *("--root-certificates", str(authority or self.authority), "--auth-supernode-private-key", str(key)),
            *("--node-config", settings),
        )

    def stop(self, name: str, *, kill: bool = False) -> None:
        """End a process and all that it started; with `kill`, at once."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        family = [process.pid, *_descendants(process.pid)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=8)
        for pid in {*family, *_descendants(process.pid)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def run(
        self,
        app: Path,
        config: Mapping[str, Any],
        *,
        timeout: float = 3600,
        simulation: Mapping[str, Any] | None = None,
    ) -> Iterator[str]:
        """Start a run of an app, with its configuration and that of the simulation, and yield its lines."""
        command = ["flwr", "run", str(app), NAME, "--stream", "--run-config", _settings(config)]
        if simulation is not None:
            command += ["--federation-config", _settings(simulation)]
        with self._popen(command, subprocess.PIPE) as process:
            assert process.stdout is not None
            deadline = time.monotonic() + timeout
            try:
                for line in process.stdout:
                    yield line.decode(errors="replace").rstrip("\n")
                    if time.monotonic() > deadline:
                        raise ConfigError(f"the run did not end within {timeout:g} s")
            finally:
                process.kill()

    def _call(self, *command: str) -> str:
        with self._popen(list(command), subprocess.PIPE) as process:
            text = process.communicate(timeout=120)[0].decode(errors="replace")
        if process.returncode:
            raise ConfigError(f"{' '.join(command[:3])} failed: {text.strip().splitlines()[-1:]}")
        return text

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as file:
            self._log_begins[name] = file.tell()
            self._processes[name] = self._popen(list(command), file)

    def _popen(self, command: list[str], output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        found = shutil.which(command[0], path=self._environment["PATH"])
        if found is None:
            raise ConfigError(f"{command[0]} is not installed: pip install 'demoa[flower]'")
        return subprocess.Popen(
            [found, *command[1:]],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _settings(values: Mapping[str, Any]) -> str:
    """Return settings as Flower's commands take them."""
    return " ".join(f"{key}={json.dumps(value)}" for key, value in values.items())


def _free_port(remembered: Path | None = None) -> int:
    """Return a port that nobody listens on; one that is remembered in a file is used again."""
    if remembered is not None and remembered.exists():
        return int(remembered.read_text())
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    if remembered is not None:
        remembered.parent.mkdir(parents=True, exist_ok=True)
        remembered.write_text(str(port))
    return port


def _descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they started.

    Flower's helpers outlive whoever started them, but are told its id.
    """
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            child = int(folder.name)
            parents = {int((folder / "stat").read_text().rpartition(")")[2].split()[1])}
            words = _words(child)
            if "--parent-pid" in words:
                parents.add(int(words[words.index("--parent-pid") + 1]))
            for parent in parents:
                children.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in found:
                found.append(child)
                todo.append(child)
    return found


def _words(pid: int) -> list[str]:
    """Return the command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
