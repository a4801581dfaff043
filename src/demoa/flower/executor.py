"""What runs the app of a SuperNode: `flower-superexec`, with apps that are forked from a process that has torch."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from typing import Any

from flwr.supercore.cli.flower_superexec import flower_superexec
from flwr.supercore.constant import TaskType
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult, SubprocessExecutor

PRELOADED = ["flwr.supernode.cli.flwr_clientapp", "demoa.flower.client"]


def main() -> None:
    """Run a SuperExec whose ClientApps are forked."""
    multiprocessing.set_forkserver_preload(PRELOADED)
    module: Any = importlib.import_module("flwr.supercore.superexec.run_superexec")
    module.get_executor = lambda *_, **__: ForkingExecutor()
    flower_superexec()


class ForkingExecutor(SubprocessExecutor):
    """Runs ClientApps in processes of their own, which start with their libraries imported."""

    def __init__(self) -> None:
        """Start the process that the others are forked from, before the first of them is wanted."""
        self._context: Any = multiprocessing.get_context("forkserver")
        self._fork(abs, 0)

    def launch(self, spec: ExecutionSpec) -> LaunchResult:
        """Start what the specification says."""
        if spec.task_type != TaskType.CLIENT_APP:
            return super().launch(spec)
        arguments = ["flwr-clientapp", "--runtime-api-address", spec.runtime_api_address, "--token", spec.token]
        arguments += ["--insecure"] if spec.insecure else ["--root-certificates", str(spec.root_certificates_path)]
        if spec.parent_pid is not None:
            arguments += ["--parent-pid", str(spec.parent_pid)]
        if spec.runtime_dependency_install:
            arguments.append("--allow-runtime-dependency-installation")
        self._fork(_run, arguments)
        return LaunchResult.accepted()

    def reconcile(self) -> None:
        """Let go of the processes that have ended."""
        multiprocessing.active_children()

    def _fork(self, target: Any, *arguments: Any) -> None:
        self._context.Process(target=target, args=arguments).start()


def _run(arguments: list[str]) -> None:
    """Do what the command would."""
    from flwr.supernode.cli.flwr_clientapp import flwr_clientapp

    sys.argv = arguments
    flwr_clientapp()


if __name__ == "__main__":
    main()
