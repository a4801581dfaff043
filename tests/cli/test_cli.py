"""What a user types, and what a user sees when something is wrong: one line, never a traceback."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from demoa import __version__
from demoa.cli.main import main
from demoa.core.errors import DemoaError
from demoa.experiment import run as demoa_run
from demoa.results import RunFolder
from demoa.server import checkpoint

SMALL = ["--set", "run.rounds=6", "--set", "run.eval_every=3", "--set", "clients.n=10", "--set", "clients.byzantine=2"]


def demoa(*words, **options):
    return subprocess.run(
        [sys.executable, "-c", "from demoa.cli.main import main; main()", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    found = demoa("run", "--out", path, *SMALL)
    assert found.returncode == 0, found.stderr
    return path, found


def test_run_ends_in_a_table_and_a_folder(finished):
    path, found = finished
    assert "demoa" in found.stdout
    assert "%" in found.stdout
    assert len(RunFolder(path).records()) == 6
    assert 0 < RunFolder(path).final()["test_accuracy"] < 1


def test_compare_draws_a_picture(finished, tmp_path):
    path, _ = finished
    found = demoa("compare", path, path, "--picture", tmp_path / "curves.png")
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_a_spec_file_is_read(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        '[task]\npartition = {name = "dirichlet", alpha = 1.0}\n[aggregation]\nrule = "rfa"\nmixing = ["bucketing"]\n'
        '[sampling]\nname = "fixed_size"\nsize = 4\n[attack]\nname = "BF"\n'
    )
    found = demoa("run", spec, "--out", tmp_path / "run", *SMALL, "--set", "clients.batch_size=8")
    assert found.returncode == 0, found.stderr
    _, resolved = RunFolder(tmp_path / "run").spec()
    assert resolved["aggregation"]["rule"] == {"name": "geometric_median", "steps": 8, "nu": 0.1}
    assert resolved["attack"]["name"] == "bit_flip"
    assert all(len(record["sampled"]) == 4 for record in RunFolder(tmp_path / "run").records()[1:])


def test_list_names_everything():
    found = demoa("list")
    for name in ("centered_clip (", "nnm", "shift_back", "marina_pp", "by_label", "trace", "resnet18", "digits"):
        assert name in found.stdout


def test_majority():
    found = demoa("majority", "--n", 25, "--f", 5, "--p", 0.5, "--rounds", 300)
    assert "0.0455" in found.stdout
    assert "12.7689" in found.stdout


def test_majority_prints_the_same_in_every_terminal():
    """Pages of the documentation hold it."""
    words = ("majority", "--p", 0.1, "--rounds", 30, "--seeds", 3)
    narrow = {**os.environ, "COLUMNS": "30", "FORCE_COLOR": "1"}
    found = [demoa(*words, env=env).stdout for env in (None, narrow)]
    assert found[0] == found[1]
    assert found[0].splitlines()[0].endswith("at least once: 90.1426%;")
    assert len(found[0].splitlines()) == 3


def test_majority_says_for_whom_round_1_counts(capsys):
    note = "it counts for FedAvg and FedCM alone"
    for seeds, expected in ((6, False), (7, True)):  # of the seeds up to 6, the last alone draws one in round 1
        with pytest.raises(SystemExit):
            main(["majority", "--p", "0.1", "--rounds", "3", "--seeds", str(seeds)])
        printed = capsys.readouterr().out
        assert (note in printed) is expected
        assert ("seed 6 in 1" in printed) is expected


def test_majority_names_the_rounds_that_runs_have(tmp_path):
    """As a run of one of these seeds records them."""
    found = demoa("majority", "--n", 10, "--f", 2, "--p", 0.1, "--rounds", 60, "--seeds", 3)
    words = ("--set", "clients.n=10", "--set", "clients.byzantine=2", "--set", "run.rounds=60", "--set", "run.seed=2")
    played = demoa("run", *QUADRATIC, *words, "--set", "algorithm.name=fedavg", "--out", tmp_path / "run")
    assert played.returncode == 0, played.stderr
    rounds = [str(record["round"]) for record in RunFolder(tmp_path / "run").records() if record["majority"]]
    assert rounds
    assert f"seed 2 in {', '.join(rounds)}." in found.stdout


def test_data_list_says_what_is_there(tmp_path):
    found = demoa("data", "list", env={"DEMOA_DATA": str(tmp_path), "PATH": ""})
    assert "digits          comes with the package" in found.stdout
    assert "mnist           not here: demoa data fetch mnist" in found.stdout


REGRESSION = ["--set", "task.dataset=least_squares", "--set", "task.model=linear"]
QUADRATIC = [
    *["--set", "task.dataset={name='quadratics', clients=8}"],
    *["--set", "task.model=quadratic", "--set", "task.partition=one_label"],
]

WRONG = [
    (["--set", "aggregation.rule=krun"], "unknown rule 'krun'; did you mean 'krum'"),
    (["--set", "aggregation.rule.name=cclip", "--set", "aggregation.rule.tua=1"], "did you mean 'tau'"),
    (["--set", "aggregation.f=5"], "tolerates f from 0 to 4, got f = 5"),
    (["--set", "aggregation.f=1.5"], "aggregation.f must be a whole number"),
    (["--set", "aggregation.mixing=buckets"], "unknown mixing 'buckets'"),
    (["--set", "aggregation.mixing=clip"], "needs the option radius"),
    (["--set", "attack.name=alien"], "unknown attack 'alien'; did you mean 'alie'"),
    (["--set", "attack.epsilon=1"], "unknown option of attack alie 'epsilon'"),
    (["--set", "attack.name=mimic", "--set", "attack.fixed=no"], "attack mimic: fixed must be true or false, got 'no'"),
    (["--set", "algorithm.full_first_round=1"], "algorithm demoa: full_first_round must be true or false, got 1"),
    (["--set", "attack.name=7"], "a table with a name and options"),
    (["--set", "algorithm.name=sgd"], "unknown algorithm 'sgd'"),
    (["--set", "algorithm.alpha=2"], "demoa: alpha must be above 0 and at most 1"),
    (["--set", "algorithm.p=0.2"], "DeMoA takes it from sampling.p"),
    (["--set", "sampling.p=0"], "bernoulli: p must be above 0"),
    (["--set", "sampling.name=fixed_size", "--set", "sampling.size=11"], "at most the 10 clients, got 11"),
    (["--set", "sampling.name=trace", "--set", "sampling.path=none.csv"], "cannot read none.csv"),
    (["--set", "task.dataset=imagenet"], "unknown data set 'imagenet'"),
    (["--set", "task.dataset=mnist"], "demoa data fetch mnist"),
    (["--set", "task.model=cnn"], "unknown model 'cnn'"),
    (["--set", "task.model.name=mlp", "--set", "task.model.width=9"], "unknown option of model mlp 'width'"),
    (["--set", "task.partition=by_lable"], "did you mean 'by_label'"),
    (["--set", "clients.batch_size=1000"], "fewer than a batch of 1000"),
    (["--set", "clients.batch_size=0"], "at least 1, got 0"),
    (["--set", "clients.byzantine=10"], "clients.byzantine must be from 0 to 9"),
    (["--set", "clients.n=ten"], "clients.n must be a whole number"),
    (["--set", "clients.m=10"], "unknown key in clients 'm'"),
    (["--set", "run.rounds=0"], "run.rounds must be a whole number, at least 1"),
    (["--set", "run.lr=-1"], "lr must be a number above 0"),
    (["--set", "run.seed=x"], "run.seed must be a whole number"),
    (["--set", "runs.seed=1"], "unknown key in the spec 'runs'; did you mean 'run'"),
    (["--set", "rounds=3"], "--set takes section.key=value"),
    (["--set", "task.dataset.name=digits", "--set", "task.dataset.size=9"], "unknown option of data set digits 'size'"),
    (["--set", "task.partition=one_label"], "as many honest clients as labels: 8 clients, 10 labels"),
    (
        ["--set", "task.model.name=resnet18", "--set", "task.model.norm=layer"],
        "norm must be one of batch, group",
    ),
    (["--set", "aggregation.rule=my_code:Rule"], "rule 'my_code:Rule' cannot be imported"),
    (
        ["--set", "aggregation.rule=math:sqrt"],
        "must be a dataclass that derives from demoa.aggregation",
    ),
    (["--set", "seeds.sampling=x"], "seeds.sampling must be a whole number"),
    (["--set", "run.heterogeneity_every=-1"], "run.heterogeneity_every must be a whole number, at least 0"),
    (["--device", "cuda"], "device 'cuda' cannot be used here"),
    (["--device", "abacus"], "device 'abacus' cannot be used here"),
    (["--vary", "attack.name"], "--vary takes section.key=value,value"),
    (["--vary", "attack.name=alie,,ipm"], "--vary takes section.key=value,value"),
    (["--vary", "attack.name=ipm,ipm"], "--vary names the same run twice"),
    (["--set", "task.dataset=quadratics"], "model mlp does not fit the data set quadratics: mat1 and mat2 shapes"),
    (["--set", "task.model=quadratic"], "model quadratic must return (2, 10) for two examples of digits, got (2, 1)"),
    (["--set", "task.model=math:sqrt"], "must take (channels, size, classes, options)"),
    (["--set", "task.model=builtins:max"], "model builtins:max must make a torch.nn.Module, got int"),
    (["--set", "task.dataset={name='quadratics', zeta='a'}"], "quadratics: zeta must be a number, at least 0"),
    (["--set", "task.dataset={name='quadratics', seed=1.5}"], "quadratics: seed must be a whole number"),
    ([*REGRESSION, "--set", "task.partition=dirichlet"], "dirichlet deals out labels"),
    ([*QUADRATIC, "--set", "attack.name=label_flip"], "attack label_flip flips labels, and quadratics has none"),
    (
        ["--set", "run.precision=float16"],
        "unknown run.precision 'float16'; did you mean 'bfloat16'? Allowed: bfloat16, float32",
    ),
    (["--set", "clients.adversary_lies_in=some"], "unknown clients.adversary_lies_in 'some'"),
    (["--threads", "0"], "threads must be a whole number, at least 1"),
]


@pytest.mark.parametrize(
    ("words", "message"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_settings_get_one_clear_line(tmp_path, words, message, monkeypatch, capsys):
    monkeypatch.setenv("DEMOA_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as stop:
        main(["run", "--out", str(tmp_path / "run"), *SMALL, *words])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert message in said
    assert said.count("\n") == 1
    assert said.startswith("demoa: ")
    assert not (tmp_path / "run").exists()


def test_wrong_flags_and_folders_are_refused(finished, tmp_path, capsys):
    path, _ = finished
    (tmp_path / "bad.toml").write_text("[run\n")
    (tmp_path / "study.toml").write_text('extends = "other.toml"\n[axes]\nrun.lr = [0.1]\n')
    for words, message in (
        (["run"], "give either --out FOLDER"),
        (["run", "--out", tmp_path / "a", "--resume", path], "give either --out FOLDER"),
        (["run", "--out", path, *SMALL], "already holds a run"),
        (["run", "--resume", tmp_path], "holds no run"),
        (["run", "--resume", path, "--set", "run.rounds=3"], "leave SPEC, --set, --vary, --device and --threads out"),
        (["run", tmp_path / "none.toml", "--out", tmp_path / "a"], "cannot read"),
        (["run", tmp_path / "bad.toml", "--out", tmp_path / "a"], "is not valid TOML"),
        (["run", "--out", "/proc/demoa", *SMALL], "cannot write to"),
        (["compare", tmp_path], "holds no run: give folders of runs"),
        (["run", "--out", tmp_path / "bad.toml", *SMALL], "bad.toml is a file; give a folder for the results"),
        (["run", tmp_path / "study.toml", "--out", tmp_path / "a"], "is a study, as it has axes, extends: play it"),
        (["run", "--out", tmp_path / "t", *SMALL, "--track", "paper"], "unknown tracker 'paper'"),
        (["compare", path, "--picture", tmp_path / "curves.xyz"], "a picture must end in .png"),
        (["majority", "--p", "0"], "p must be above 0"),
        (["majority", "--seeds", "-1"], "--seeds must be at least 0, got -1"),
        (["data", "fetch", "imagenet"], "unknown data set to fetch"),
    ):
        with pytest.raises(SystemExit) as stop:
            main([*map(str, words)])
        said = capsys.readouterr().err
        assert stop.value.code == 2, words
        assert message in said.replace("\n", " ").replace("│", " ").replace("  ", " "), words


def test_runs_go_on_side_by_side_and_come_back_together(tmp_path):
    words = ["--vary", "algorithm.name=demoa,fedavg", "--vary", "sampling.p=0.3,0.6"]
    found = demoa("run", "--out", tmp_path / "all", *SMALL, *words)
    assert found.returncode == 0, found.stderr
    names = {"demoa-p0.3", "demoa-p0.6", "fedavg-p0.3", "fedavg-p0.6"}
    assert {path.name for path in (tmp_path / "all").iterdir()} == names
    alone = tmp_path / "alone"
    demoa("run", "--out", alone, *SMALL, "--set", "algorithm.name=fedavg", "--set", "sampling.p=0.6")
    for name in ("records.jsonl", "state.safetensors", "final.json"):
        assert (tmp_path / "all" / "fedavg-p0.6" / name).read_bytes() == (alone / name).read_bytes()
    (alone / "final.json").unlink()
    assert demoa("run", "--resume", tmp_path / "all").returncode == 0


def test_runs_of_two_folders_are_told_apart(finished, tmp_path, capsys):
    path, _ = finished
    for name in ("one", "other"):
        shutil.copytree(path, tmp_path / name / "alie")
    with pytest.raises(SystemExit) as stop:
        main(["compare", str(tmp_path / "one"), str(tmp_path / "other"), str(tmp_path / "one" / "alie")])
    said = capsys.readouterr().out
    assert stop.value.code == 0
    assert said.count("one/alie") == said.count("other/alie") == 1


def test_what_was_played_before_counts_when_a_run_goes_on(tmp_path):
    words = ("--set", "clients.byzantine=4", "--set", "sampling.p=0.3", "--set", "run.seed=4")
    assert demoa("run", "--out", tmp_path / "run", *SMALL, *words).returncode == 0
    majorities = sum(record["majority"] for record in RunFolder(tmp_path / "run").records())
    assert majorities > 0
    found = demoa("run", "--resume", tmp_path / "run")
    assert f"majority rounds {majorities:>3}" in found.stdout


def test_the_version_is_told():
    assert demoa("--version").stdout == f"demoa {__version__}\n"
    assert demoa().returncode == 2  # and says what there is


def test_a_changed_spec_is_not_resumed(finished, tmp_path):
    path, _ = finished
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    (copy / "spec.json").write_text((copy / "spec.json").read_text().replace('"lr": 0.1', '"lr": 0.2'))
    found = demoa("run", "--resume", copy)
    assert found.returncode == 2
    assert "holds another run than this spec describes" in found.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_gets_one_line_and_loses_nothing(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    (out / "records.jsonl").symlink_to("/dev/full")
    found = demoa("run", "--out", out, *SMALL)
    assert found.returncode == 2
    assert "No space left on device; make room, then go on" in found.stderr.replace("\n", " ")
    assert "Traceback" not in found.stderr
    (out / "records.jsonl").unlink()
    (out / "records.jsonl").touch()
    assert demoa("run", "--resume", out).returncode == 0
    assert len(RunFolder(out).records()) == 6


OWN_CODE = """
from dataclasses import dataclass
import numpy as np
from demoa.aggregation.decision import average_of
from demoa.aggregation.rules import Rule
from demoa.attacks import Attack
from demoa.sampling import Sampling

@dataclass(frozen=True)
class Shortest(Rule):
    keep: int = 3
    def tolerance(self, rows): return rows - self.keep
    def decide(self, table, f): return average_of(np.argsort(table.squared_norms)[: self.keep], table.rows)

@dataclass(frozen=True)
class Zero(Attack):
    colludes = False
    def spoil(self, vector): return 0 * vector
"""


def test_parts_of_ones_own_are_found_in_the_present_folder(tmp_path):
    (tmp_path / "my_code.py").write_text(OWN_CODE)
    words = ["--set", "aggregation.rule={name='my_code:Shortest', keep=2}", "--set", "attack.name=my_code:Zero"]
    found = demoa("run", "--out", "run", *SMALL, *words, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    _, spec = RunFolder(tmp_path / "run").spec()
    assert spec["aggregation"]["rule"] == {"name": "my_code:Shortest", "keep": 2}
    assert all(np.count_nonzero(record["weights"]) == 2 for record in RunFolder(tmp_path / "run").records())
    assert demoa("run", "--resume", "run", cwd=tmp_path).returncode == 0


def test_tensorboard_gets_every_round(tmp_path):
    found = demoa("run", "--out", tmp_path / "run", *SMALL, "--track", "tensorboard")
    assert found.returncode == 0, found.stderr
    read = (
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as E; import sys; "
        "e = E(sys.argv[1]); e.Reload(); print([s.step for s in e.Scalars('aggregation_error')])"
    )
    words = [sys.executable, "-c", read, str(tmp_path / "run" / "tensorboard")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() == "[1, 2, 3, 4, 5, 6]"


def test_mlflow_gets_every_round_and_takes_up_its_run(tmp_path):
    env = {**os.environ, "MLFLOW_TRACKING_URI": f"file:{tmp_path}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"}
    found = demoa("run", "--out", tmp_path / "run", *SMALL, "--track", "mlflow", env=env)
    assert found.returncode == 0, found.stderr
    assert demoa("run", "--resume", tmp_path / "run", "--track", "mlflow", env=env).returncode == 0
    read = (
        "import mlflow; (run,) = mlflow.search_runs(experiment_names=['demoa'], output_format='list'); "
        "found = mlflow.MlflowClient().get_metric_history(run.info.run_id, 'aggregation_error'); "
        "print([point.step for point in found], run.data.params['sampling.p'], run.info.status)"
    )
    words = [sys.executable, "-c", read]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout.strip()
    assert said == "[1, 2, 3, 4, 5, 6] 0.1 FINISHED"


def test_a_tracker_that_cannot_start_gets_one_line(tmp_path):
    env = {**os.environ, "MLFLOW_TRACKING_URI": "carrier-pigeon://roof"}
    found = demoa("run", "--out", tmp_path / "run", *SMALL, "--track", "mlflow", env=env)
    assert found.returncode == 2
    assert "tracker mlflow cannot start: " in found.stderr
    assert "Traceback" not in found.stderr
    assert demoa("run", "--out", tmp_path / "run", *SMALL).returncode == 0  # nothing was begun


class Deaf:
    """A tracker that fails at everything it is told, in words that look like markup."""

    def __init__(self, *_):
        pass

    def log(self, record):
        raise RuntimeError("500 [/api/2.0]")

    def close(self, final):
        raise TimeoutError


def test_a_tracker_that_fails_does_not_stop_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("demoa.results.trackers.TRACKERS", {"deaf": Deaf})
    with pytest.raises(SystemExit) as stop:
        main(["run", "--out", str(tmp_path / "run"), *SMALL, "--track", "deaf"])
    assert stop.value.code == 0
    assert "Deaf stopped listening: 500 [/api/2.0]" in capsys.readouterr().out
    assert RunFolder(tmp_path / "run").final() is not None


def test_a_run_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    real = demoa_run.play

    def failing(experiment, folder):
        if experiment.spec.run.seed == 1:
            raise DemoaError("the dog ate it")
        yield from real(experiment, folder)

    monkeypatch.setattr("demoa.cli.train.play", failing)
    with pytest.raises(SystemExit) as stop:
        main(["run", "--out", str(tmp_path), *SMALL, "--vary", "run.seed=0,1,2"])
    assert stop.value.code == 2
    assert "the dog ate it" in capsys.readouterr().err
    assert [(tmp_path / f"seed{seed}" / "final.json").exists() for seed in range(3)] == [True, False, True]


def test_vary_begins_nothing_where_a_folder_is_taken(finished, tmp_path):
    path, _ = finished
    shutil.copytree(path, tmp_path / "seed1")
    found = demoa("run", "--out", tmp_path, *SMALL, "--vary", "run.seed=0,1")
    assert found.returncode == 2
    assert "seed1 already holds a run" in found.stderr.replace("\n", " ")
    assert not (tmp_path / "seed0").exists()


def test_interrupt_ends_the_round_and_saves(tmp_path):
    words = [sys.executable, "-c", "from demoa.cli.main import main; main()", "run", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [*words, "--set", "run.rounds=100000", "--set", "run.checkpoint_every=100000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        records = tmp_path / "run" / "records.jsonl"
        deadline = time.monotonic() + 300
        while not (records.exists() and records.read_text().count("\n") > 5) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert "stopped; go on with: demoa run --resume" in process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    header, _ = checkpoint.read(tmp_path / "run" / "state.safetensors")
    assert header["round"] == len(RunFolder(tmp_path / "run").records()) > 5


def test_weights_and_biases_keeps_a_run_offline(tmp_path):
    env = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    words = [*SMALL, "--track", "wandb", "--vary", "run.seed=0,1"]
    found = demoa("run", "--out", tmp_path, *words, env=env)
    assert found.returncode == 0, found.stderr
    for name in ("seed0", "seed1"):
        assert len(list((tmp_path / name / "wandb").glob("offline-run-*/run-*.wandb"))) == 1


def test_a_finished_run_is_resumed_to_the_same_end(finished):
    path, _ = finished
    before = RunFolder(path).final()
    assert demoa("run", "--resume", path).returncode == 0
    assert RunFolder(path).final() == before
