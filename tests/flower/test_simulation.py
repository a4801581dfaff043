"""Flower's simulation engine: it gives the bits of the simulator, and runs the example."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from demoa.core.errors import ConfigError
from demoa.experiment.build import make_experiment
from demoa.experiment.load import read_spec
from demoa.flower.local import LocalDeployment
from demoa.flower.simulate import strategy_for

CODE = """
import numpy as np, sys
from demoa.core.torch_threads import use_threads
from demoa.experiment.build import make_experiment
from demoa.experiment.load import read_spec
from demoa.flower.simulate import simulate

same = True
for settings in {settings!r}:
    spec = read_spec(None, ["run.rounds=20", "clients.n=10", "clients.byzantine=2", "sampling.p=0.4", *settings])
    experiment = make_experiment(spec)
    use_threads(1)
    for _ in range(20):
        experiment.federation.play()
    mine = experiment.federation.server.parameters.numpy()
    theirs = simulate(spec)
    start = experiment.federation.adversary.start.numpy()
    same = same and np.array_equal(mine, theirs) and not np.array_equal(mine, start)
print("the same bits:", same)
"""

CASES = [
    ["attack.name=alie", "aggregation.mixing=bucketing"],
    ["attack.name=label_flip", "algorithm.name=marina_pp", "aggregation.rule=krum", "seeds.sampling=7"],
]


def test_both_engines_give_the_same_bits(tmp_path):
    """All cases in one process: Ray takes longer to start than they take."""
    env = {
        **os.environ,
        "FLWR_HOME": str(tmp_path),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    found = subprocess.run(
        [sys.executable, "-c", CODE.format(settings=CASES)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=env,
    )
    assert found.returncode == 0, found.stderr
    assert "the same bits: True" in found.stdout


def test_the_example_runs_by_flwr_run(tmp_path):
    """`flwr run` on a SuperLink that simulates the clients, one of which sends NaN."""
    app = Path(__file__).parents[2] / "examples" / "flower-digits"
    config = {"clients": 4, "faulty": 1, "rounds": 3, "p": 0.9, "attacks": "nan"}
    simulation = {"num-supernodes": 4, "client-resources-num-cpus": 1, "init-args-num-cpus": 2}
    with LocalDeployment(tmp_path, simulation=True) as deployment:
        lines = list(deployment.run(app, config, timeout=240, simulation=simulation))
    text = "\n".join(lines)
    assert re.search(r"round 3: accuracy \d", text), text
    assert "rejected (not_finite)" in text
    assert re.search(r"^0 +1\.00", text, re.MULTILINE), "the audit puts client 0 first"


def test_labels_that_are_flipped_in_some_rounds_only_are_refused():
    settings = ["attack.name=label_flip", "clients.adversary_lies_in=majority"]
    with pytest.raises(ConfigError, match=r"label_flip in majority rounds alone: .* use demoa run, or another attack"):
        strategy_for(make_experiment(read_spec(None, settings)))
