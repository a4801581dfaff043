"""What a user types, and what a user sees when something is wrong: one line, never a traceback."""

import subprocess
import sys

import pytest

from demoa.cli.main import main
from demoa.results import RunFolder

SMALL = ["--set", "run.rounds=6", "--set", "run.eval_every=3", "--set", "clients.n=10", "--set", "clients.byzantine=2"]


def demoa(*words, **options):
    return subprocess.run(
        [sys.executable, "-c", "from demoa.cli.main import main; main()", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
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


def test_data_list_says_what_is_there(tmp_path):
    found = demoa("data", "list", env={"DEMOA_DATA": str(tmp_path), "PATH": ""})
    assert "ships with the package" in found.stdout
    assert "not fetched" in found.stdout


WRONG = [
    (["--set", "aggregation.rule=krun"], "unknown rule 'krun'; did you mean 'krum'"),
    (["--set", "aggregation.rule.name=cclip", "--set", "aggregation.rule.tua=1"], "did you mean 'tau'"),
    (["--set", "aggregation.f=5"], "tolerates f from 0 to 4, got f = 5"),
    (["--set", "aggregation.f=1.5"], "aggregation.f must be a whole number"),
    (["--set", "aggregation.mixing=buckets"], "unknown mixing 'buckets'"),
    (["--set", "aggregation.mixing=clip"], "needs the option radius"),
    (["--set", "attack.name=alien"], "unknown attack 'alien'; did you mean 'alie'"),
    (["--set", "attack.epsilon=1"], "unknown option of attack alie 'epsilon'"),
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


def test_wrong_flags_and_folders_are_refused(finished, tmp_path):
    path, _ = finished
    (tmp_path / "bad.toml").write_text("[run\n")
    for words, message in (
        (["run"], "give either --out FOLDER"),
        (["run", "--out", tmp_path / "a", "--resume", path], "give either --out FOLDER"),
        (["run", "--out", path, *SMALL], "already holds a run"),
        (["run", "--resume", tmp_path], "holds no run"),
        (["run", "--resume", path, "--set", "run.rounds=3"], "leave SPEC and --set out"),
        (["run", tmp_path / "none.toml", "--out", tmp_path / "a"], "cannot read"),
        (["run", tmp_path / "bad.toml", "--out", tmp_path / "a"], "is not valid TOML"),
        (["run", "--out", "/proc/demoa", *SMALL], "cannot write to"),
        (["compare", tmp_path], "holds no run"),
        (["compare", path, "--picture", tmp_path / "curves.xyz"], "cannot draw"),
        (["majority", "--p", "0"], "p must be above 0"),
        (["data", "fetch", "imagenet"], "unknown data set to fetch"),
    ):
        found = demoa(*words)
        assert found.returncode == 2, words
        assert message in found.stderr.replace("\n", " ").replace("│", " ").replace("  ", " "), words
        assert "Traceback" not in found.stderr


def test_a_finished_run_is_resumed_to_the_same_end(finished):
    path, _ = finished
    before = RunFolder(path).final()
    assert demoa("run", "--resume", path).returncode == 0
    assert RunFolder(path).final() == before
