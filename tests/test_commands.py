"""The commands that people run, at toy size, so that they cannot rot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def command(*words, **options):
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, **options
    )


def test_the_demo_shows_demoa_through_majority_rounds():
    found = command("examples/majority_rounds.py")
    assert found.returncode == 0, found.stderr
    worst = [float(line.split()[4]) for line in found.stdout.splitlines() if "worst after round 50" in line]
    demoa, *others = worst
    assert len(others) == 2
    assert demoa < 10 < 200 < min(others)
    assert "!" in found.stdout


def test_the_demo_refuses_bad_flags_in_one_line():
    found = command("examples/majority_rounds.py", "--rounds", "0")
    assert found.returncode == 2
    assert "--rounds must be at least 1, got 0" in found.stderr


def test_the_benchmark_runs(tmp_path):
    found = command("benchmarks/server_round.py", "--toy", "--json", str(tmp_path / "lines.json"))
    assert found.returncode == 0, found.stderr
    assert "nnm + geometric_median" in found.stdout
    assert "peak resident memory" in found.stdout
    assert (tmp_path / "lines.json").stat().st_size > 1000


def test_the_benchmark_of_whole_rounds_runs(tmp_path):
    found = command("benchmarks/round.py", "--toy", "--json", str(tmp_path / "lines.json"))
    assert found.returncode == 0, found.stderr
    assert "centered_clip" in found.stdout
    assert "krum, everyone" in found.stdout
    assert (tmp_path / "lines.json").stat().st_size > 100


def test_the_benchmark_of_sweeps_runs():
    found = command("benchmarks/sweep.py", "--toy")
    assert found.returncode == 0, found.stderr
    assert "processor time of the whole command" in found.stdout


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").iterdir()))
def test_scripts_are_executable(script):
    assert os.access(ROOT / "scripts" / script, os.X_OK)


@pytest.mark.parametrize("what", ["growth", "large", "outlook"])
def test_the_benchmark_of_many_clients_runs(what):
    found = command("benchmarks/scale.py", what, "--toy")
    assert found.returncode == 0, found.stderr
    assert "centered_clip" in found.stdout
    assert "krum" in found.stdout


def test_the_benchmark_of_deployments_runs():
    found = command("benchmarks/deployment.py", "cost", "--toy")
    assert found.returncode == 0, found.stderr
    assert "fedavg" in found.stdout
    assert "demoa, saved after each round" in found.stdout
