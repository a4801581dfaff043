"""Studies at work: in real processes that are killed, interrupted, fail, and go on."""

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from filelock import FileLock

from demoa import results
from demoa.cli.main import main
from demoa.core.errors import ConfigError
from demoa.core.machine import machine
from demoa.results import RunFolder
from demoa.results.study import StudyFolder
from demoa.sweep.grid import expand
from demoa.sweep.jobs import Ended, Job, perform
from demoa.sweep.study import read_study
from demoa.sweep.sweep import Sweep

ROOT = Path(__file__).parents[2]
DEMOA = [sys.executable, "-c", "from demoa.cli.main import main; main()"]

STUDY = """
title = "Small"
seeds = [0, 1]
[spec.task]
model = {name = "mlp", hidden = 16}
[spec.clients]
n = 10
byzantine = 2
[spec.run]
rounds = 120
eval_every = 20
checkpoint_every = 15
[axes]
algorithm.name = ["demoa", "fedavg"]
attack.name = ["alie", "bit_flip"]
[tune]
method = "halving"
over.run.lr = [0.5, 0.1, 0.001]
"""


def demoa(*words, **options):
    return subprocess.run(
        [*DEMOA, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, **options
    )


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def straight(spec, tmp_path_factory):
    """The folder of a study that was never disturbed."""
    path = tmp_path_factory.mktemp("straight") / "study"
    found = demoa("sweep", spec, "--out", path, "--processes", 2, "--keep-states")
    assert found.returncode == 0, found.stderr
    return path


def table(path):
    """What a study came to; all but how long it took."""
    return results.load(path).drop("seconds").to_dicts()


def outcome(path):
    """What every run left behind, as bytes."""
    names = ("spec.json", "records.jsonl", "scores.json", "final.json")
    runs = sorted((path / "runs").iterdir())
    return {(run.name, name): (run / name).read_bytes() for run in runs for name in names if (run / name).exists()}


def test_a_study_ends_in_a_choice_for_every_cell(straight):
    rows = table(straight)
    assert len(rows) == 24
    assert [row["status"] for row in rows].count("done") == 8
    assert [row["status"] for row in rows].count("dropped") == 16
    cells = [(row["algorithm.name"], row["attack.name"], row["run.seed"]) for row in rows if row["chosen"]]
    assert len(cells) == len(set(cells)) == 8
    assert all(row["status"] == "done" for row in rows if row["chosen"])


def test_a_study_that_is_killed_five_times_comes_to_the_same(spec, straight, tmp_path):
    path = tmp_path / "study"
    draw = random.Random(4)
    kills = 0
    for _ in range(5):
        before = len(StudyFolder(path).journal())
        process = subprocess.Popen([*DEMOA, "sweep", str(spec), "--out", str(path)], stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while len(StudyFolder(path).journal()) < before + 3 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 0.4))
            assert process.poll() is None, "it ended before it could be killed"
            kills += 1
        finally:
            process.kill()
            process.wait()
    assert kills == 5
    found = demoa("sweep", spec, "--out", path)
    assert found.returncode == 0, found.stderr
    assert table(path) == table(straight)
    assert outcome(path) == outcome(straight)


def test_runs_of_a_study_are_the_runs_of_demoa_run(straight, tmp_path):
    for run in [row["run"] for row in table(straight) if row["chosen"]][::3]:
        before = straight / "runs" / run
        spec = RunFolder(before).spec()[1]
        words = [
            word
            for section, values in spec.items()
            for key, value in values.items()
            for word in ("--set", f"{section}.{key}={toml(value)}")
        ]
        found = demoa("run", "--out", tmp_path / run, *words, "--quiet")
        assert found.returncode == 0, found.stderr
        for name in ("spec.json", "records.jsonl", "state.safetensors", "final.json"):
            assert (tmp_path / run / name).read_bytes() == (before / name).read_bytes(), name


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_finished_runs_are_never_played_again(spec, straight):
    before = {path: path.stat().st_mtime_ns for path in (straight / "runs").rglob("*") if path.name != ".lock"}
    events = len(StudyFolder(straight).journal())
    assert demoa("sweep", spec, "--out", straight, "--keep-states").returncode == 0
    assert before == {path: path.stat().st_mtime_ns for path in (straight / "runs").rglob("*") if path.name != ".lock"}
    assert len(StudyFolder(straight).journal()) == events


def test_a_study_in_one_file_is_not_played_again(spec, straight, tmp_path):
    results.export(straight, tmp_path / "known.jsonl")
    path = tmp_path / "study"
    found = demoa("sweep", spec, "--out", path, "--known", tmp_path / "known.jsonl")
    assert found.returncode == 0, found.stderr
    assert "24 runs are known from" in found.stdout
    assert not [event for event in StudyFolder(path).journal() if event["event"] == "began"]
    results.export(path, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "known.jsonl").read_text()
    with pytest.raises(ConfigError, match="came from a file that holds no records of single rounds"):
        results.load(path, "rounds")


def test_time_left_goes_by_runs_played_here_as_soon_as_there_is_one(spec, straight, tmp_path):
    path = tmp_path / "study"
    shutil.copytree(straight, path)
    events = StudyFolder(path).journal()
    ended = [{**event, "seconds": 1e6, "outcome": "known"} for event in events if event["event"] == "ended"]
    shutil.rmtree(next((path / "runs").iterdir()))
    (path / "chosen.json").unlink()
    (path / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in ended))
    assert seconds_left(spec, path) > 1e5
    with (path / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps({**ended[0], "seconds": 1.0, "outcome": "done"}) + "\n")
    assert 0 < seconds_left(spec, path) < 100


def seconds_left(spec, path):
    study = read_study(spec)
    folder = StudyFolder(path)
    sweep = Sweep(study, expand(study), folder)
    sweep.open()
    folder.close()
    return sweep.status(2).seconds_left


def test_a_study_goes_on_from_a_file_that_holds_a_part_of_it(spec, straight, tmp_path):
    """Of some runs it has the end, of some what validation said on the way, of some nothing, of one that it failed."""
    part = tmp_path / "part"
    shutil.copytree(straight, part)
    runs = sorted((part / "runs").iterdir())
    done = [run for run in runs if (run / "final.json").exists()]
    for run in done[::2]:
        (run / "final.json").unlink()
    lost = next(run for run in runs if run not in done)
    shutil.rmtree(lost)
    RunFolder(done[0]).fail("RuntimeError: no luck", "")
    (part / "chosen.json").unlink()
    results.export(part, tmp_path / "part.jsonl")
    path = tmp_path / "study"
    found = demoa("sweep", spec, "--out", path, "--known", tmp_path / "part.jsonl")
    assert found.returncode == 0, found.stderr
    assert "22 runs are known from" in found.stdout
    assert table(path) == table(straight)
    played = {event["run"] for event in StudyFolder(path).journal() if event["event"] == "began"}
    assert played == {run.name for run in (*done[::2], lost)}


def test_a_run_that_paused_elsewhere_is_played_again(spec, straight, tmp_path):
    """In a grid runs do not pause, so that halving cannot judge by them; the other way round all can be used."""
    whole = tmp_path / "whole.toml"
    whole.write_text(STUDY.replace("halving", "grid"))
    found = demoa("sweep", whole, "--out", tmp_path / "grid", "--processes", 2)
    assert found.returncode == 0, found.stderr
    results.export(tmp_path / "grid", tmp_path / "grid.jsonl")
    path = tmp_path / "study"
    found = demoa("sweep", spec, "--out", path, "--known", tmp_path / "grid.jsonl")
    assert found.returncode == 0, found.stderr
    assert "0 runs are known from" in found.stdout
    assert table(path) == table(straight)
    results.export(straight, tmp_path / "halving.jsonl")
    found = demoa("sweep", whole, "--out", tmp_path / "other", "--known", tmp_path / "halving.jsonl", "--plan")
    assert "24 runs are known from" in found.stdout


def test_a_run_that_was_not_chosen_elsewhere_keeps_its_curve(tmp_path):
    both, one = tmp_path / "both.toml", tmp_path / "one.toml"
    both.write_text(STUDY.replace("halving", "grid").replace("[0.5, 0.1, 0.001]", "[0.5, 0.001]"))
    one.write_text(STUDY.replace("halving", "grid").replace("[0.5, 0.1, 0.001]", "[0.001]"))
    assert demoa("sweep", both, "--out", tmp_path / "a", "--set", "run.rounds=20").returncode == 0
    results.export(tmp_path / "a", tmp_path / "a.jsonl")
    words = ("--known", tmp_path / "a.jsonl", "--set", "run.rounds=20")
    assert demoa("sweep", one, "--out", tmp_path / "b", *words).returncode == 0
    assert [event["event"] for event in StudyFolder(tmp_path / "b").journal()] == ["ended"] * 8
    for run in results.read_results(tmp_path / "b").runs:
        played = results.read_results(tmp_path / "a" / "runs" / run.id).runs[0]
        assert run.history.plain() == played.history.plain()
        assert run.history.points["accuracy"]


def test_a_run_that_was_tampered_with_is_not_taken(spec, straight, tmp_path):
    results.export(straight, tmp_path / "known.jsonl")
    text = (tmp_path / "known.jsonl").read_text().replace('"batch_size": 32', '"batch_size": 31')
    (tmp_path / "known.jsonl").write_text(text)
    found = demoa("sweep", spec, "--out", tmp_path / "study", "--known", tmp_path / "known.jsonl", "--plan")
    assert "0 runs are known from" in found.stdout
    assert not (tmp_path / "study").exists()


def test_a_job_that_changes_nothing_ends_the_sweep(spec, straight, tmp_path):
    """Were a run through without what halving needs of it, it would be begun for ever."""
    path = tmp_path / "study"
    shutil.copytree(straight, path)
    run = next(run for run in (path / "runs").iterdir() if (run / "final.json").exists())
    (run / "scores.json").unlink()
    found = demoa("sweep", spec, "--out", path)
    assert found.returncode == 2
    assert "lacks what validation said at round 40; delete that folder, then go on" in found.stderr


def test_runs_of_a_study_come_out_again(straight, tmp_path, capsys):
    results.export(straight, tmp_path / "kept.jsonl")
    words = ["verify", str(tmp_path / "kept.jsonl"), "--out", str(tmp_path / "again"), "--cells", "2", "--seed", "3"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.count("the same\n") == 4
    assert "4 of 4 runs came out the same." in said


def test_figures_that_do_not_come_out_again_are_named(straight, tmp_path, capsys):
    results.export(straight, tmp_path / "kept.jsonl")
    head, *lines = map(json.loads, (tmp_path / "kept.jsonl").read_text().splitlines())
    for line in lines:
        if line["final"] and line["seed"] == 1:
            line["final"]["test_accuracy"] += 0.001
            line["points"]["loss"][0][1] += 0.001
            assert line["machines"] == [machine("cpu")]
            line["machines"] = ["an abacus"]
    (tmp_path / "other.jsonl").write_text("\n".join(map(json.dumps, [head, *lines])))
    words = ["verify", str(tmp_path / "other.jsonl"), "--out", str(tmp_path / "again"), "--cells", "1"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "now; test_accuracy, curves differ. It was played on an abacus, and now on torch" in said
    assert "1 of 2 runs came out the same." in said
    for wrong, line in (
        (["--cells", "5"], "5 cells were asked for, and 4 are through; ask for fewer"),
        (["--cells", "0"], "--cells must be"),
        (["--cells", "1"], "is not an empty folder; choose another"),
        (["--out", str(straight), "--cells", "1"], "is not an empty folder; choose another"),
    ):
        with pytest.raises(SystemExit):
            main([*words[:-2], *wrong])
        assert line in capsys.readouterr().err


def test_runs_that_diverge_diverge_again(tmp_path, capsys):
    (tmp_path / "study.toml").write_text(STUDY.replace("[0.5, 0.1, 0.001]", "[1e30]").replace("[0, 1]", "[0]"))
    settings = ["--set", "run.rounds=5", "--set", "run.eval_every=5"]
    for words in (
        ["sweep", str(tmp_path / "study.toml"), "--out", str(tmp_path / "study"), *settings],
        ["verify", str(tmp_path / "study"), "--cells", "4", "--out", str(tmp_path / "again")],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    assert "4 of 4 runs came out the same." in capsys.readouterr().out


def test_states_are_kept_only_on_request(spec, tmp_path, straight):
    assert any((straight / "runs").glob("*/state.safetensors"))
    path = tmp_path / "study"
    assert demoa("sweep", spec, "--out", path, "--set", "run.rounds=9").returncode == 0
    assert not any((path / "runs").glob("*/state.safetensors"))


def test_halving_chooses_as_well_as_the_grid(straight, spec, tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(STUDY.replace('"halving"', '"grid"'))
    found = demoa("sweep", grid, "--out", tmp_path / "grid")
    assert found.returncode == 0, found.stderr
    halved, whole = (
        {(row["algorithm.name"], row["attack.name"]): row["run.lr"] for row in table(path) if row["chosen"]}
        for path in (straight, tmp_path / "grid")
    )
    assert len(whole) == 4
    assert halved == whole


def test_interrupt_saves_and_the_same_command_goes_on(spec, straight, tmp_path):
    path = tmp_path / "study"
    words = [*DEMOA, "sweep", str(spec), "--out", str(path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, start_new_session=True, **quiet)
    try:
        deadline = time.monotonic() + 300
        while len(StudyFolder(path).journal()) < 2 and time.monotonic() < deadline:  # its first processes are starting
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert said == "demoa: stopped; the same command goes on with it\n"
    assert process.returncode == 130
    assert "failed" not in [event.get("outcome") for event in StudyFolder(path).journal()]
    assert demoa("sweep", spec, "--out", path).returncode == 0
    assert table(path) == table(straight)


FAILING = """
from dataclasses import dataclass
import os, signal
from demoa.attacks import Attack

@dataclass(frozen=True)
class Bug(Attack):
    how: str = "raise"
    def row(self, view):
        if view.round == 3:
            if self.how == "raise":
                raise RuntimeError("the dog ate it\\nand more")
            if self.how == "die":
                os.kill(os.getpid(), signal.SIGKILL)
        return view.honest.mean()
"""


def test_a_failed_run_is_kept_with_its_error_and_stops_no_other(tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    study = tmp_path / "study.toml"
    study.write_text(
        "seeds = [0, 1]\n[spec.run]\nrounds = 10\n[spec.sampling]\np = 1.0\n"
        '[axes]\nattack = ["none", {name = "failing:Bug", how = "raise"}, {name = "failing:Bug", how = "die"}]\n'
    )
    found = demoa("sweep", study, "--out", tmp_path / "out", cwd=tmp_path)
    assert found.returncode == 1
    assert "failed: RuntimeError: the dog ate it" in found.stderr
    assert "its process was killed by SIGKILL" in found.stderr
    assert "4 runs failed; try them again with --retry" in found.stderr
    assert "Traceback" not in found.stderr
    rows = table(tmp_path / "out")
    assert [row["status"] for row in rows] == ["done", "done", "failed", "failed", "failed", "failed"]
    assert rows[2]["error"] == "RuntimeError: the dog ate it"
    again = demoa("sweep", study, "--out", tmp_path / "out", cwd=tmp_path)
    assert again.returncode == 1
    assert len([event for event in StudyFolder(tmp_path / "out").journal() if event["event"] == "began"]) == 6
    (tmp_path / "failing.py").write_text(FAILING.replace("view.round == 3", "False"))
    assert demoa("sweep", study, "--out", tmp_path / "out", "--retry", cwd=tmp_path).returncode == 0
    assert {row["status"] for row in table(tmp_path / "out")} == {"done"}


def test_bad_sweeps_get_one_line(spec, straight, tmp_path, capsys):
    other = tmp_path / "other.toml"
    other.write_text("[axes]\nrun.lr = [0.1]\n")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[axes]\nrun.lrr = [0.1]\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for words, message in [
        ((other, "--out", straight), "holds another study ('Small'); choose another folder with --out"),
        ((spec, "--out", tmp_path / "full"), "is not empty and holds no study"),
        ((spec, "--out", "/proc/study"), "cannot write to /proc/study"),
        ((spec, "--out", other), "cannot write to"),
        ((spec, "--out", tmp_path / "a", "--set", "run.lr=1"), "would be overridden by the axis run.lr"),
        ((wrong, "--out", tmp_path / "a"), "unknown key in run 'lrr'; did you mean 'lr'"),
        ((tmp_path / "none.toml", "--out", tmp_path / "a"), "cannot read"),
        ((spec, "--out", tmp_path / "a", "--budget", "lots"), "such as 10% or 2h"),
        ((spec, "--out", tmp_path / "a", "--engine", "slurm"), "unknown engine 'slurm'"),
        ((spec, "--out", tmp_path / "a", "--processes", "0"), "--processes must be a whole number, at least 1"),
        ((spec, "--out", tmp_path / "a", "--set", "clients.m=3"), "unknown key in clients 'm'"),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(["sweep", *map(str, words)])
        said = capsys.readouterr().err.strip()
        assert stop.value.code == 2, words
        assert message in said, words
        assert "\n" not in said
        assert not (tmp_path / "a").exists()


def test_missing_data_is_said_once(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text("[axes]\ntask.dataset = ['digits', 'mnist']\n")
    found = demoa("sweep", study, "--out", tmp_path / "a", env={**os.environ, "DEMOA_DATA": str(tmp_path / "none")})
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "demoa data fetch mnist" in found.stderr
    assert not (tmp_path / "a").exists()


def test_a_run_that_an_orphan_brought_to_its_end_is_left_as_it_is(straight, tmp_path):
    (run, *_) = [row["run"] for row in table(straight) if row["chosen"]]
    copy = tmp_path / run
    shutil.copytree(straight / "runs" / run, copy)
    before = (copy / "records.jsonl").read_bytes()
    job = Job(run, copy, RunFolder(copy).spec()[1], 120, keep_state=False)
    assert perform(job, lambda progress: None, lambda: False, {}).outcome == "done"
    assert (copy / "records.jsonl").read_bytes() == before
    assert not (copy / "state.safetensors").exists()
    found = demoa("run", "--resume", copy)
    assert found.returncode == 2
    assert "is through, and its server was not kept" in found.stderr
    assert (copy / "records.jsonl").read_bytes() == before


def test_a_job_waits_for_a_run_that_another_process_holds(straight, tmp_path):
    (run, *_) = [row["run"] for row in table(straight) if row["chosen"]]
    copy = tmp_path / run
    shutil.copytree(straight / "runs" / run, copy)
    job = Job(run, copy, RunFolder(copy).spec()[1], 120, keep_state=True)
    asked = iter([False, False, True, True])
    with FileLock(copy / ".lock"):
        assert perform(job, lambda progress: None, lambda: next(asked), {}).outcome == "stopped"
    assert RunFolder(copy).error() is None


def test_a_full_disk_stops_the_sweep_and_fails_no_run(spec, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("demoa.results.folder.os.replace", full)
    run = expand(read_study(spec))[0].runs[0]
    ended = perform(Job(run.id, tmp_path / run.id, run.spec, 120, False), lambda progress: None, lambda: False, {})
    assert ended.outcome == "no room"
    assert "No space left on device" in ended.error
    assert not (tmp_path / run.id / "error.json").exists()


class NoRoom:
    """An engine on a full disk."""

    slots = 2

    def __init__(self):
        self.jobs, self.stopped = [], False

    def start(self, job):
        self.jobs.append(job)

    def wait(self, seconds):
        return [Ended(self.jobs.pop().id, "no room", "cannot write: No space left on device")]

    def stop(self):
        self.stopped = True

    def close(self):
        pass


def test_a_sweep_without_room_ends_with_one_error(spec, tmp_path):
    study = read_study(spec)
    folder = StudyFolder(tmp_path / "study")
    sweep, engine = Sweep(study, expand(study), folder), NoRoom()
    sweep.open()
    with pytest.raises(OSError, match="No space left"):
        list(sweep.play(engine))
    folder.close()
    assert engine.stopped
    assert sweep.failures() == []


def test_a_study_whose_first_file_was_cut_short_can_begin_again(spec, tmp_path):
    path = tmp_path / "study"
    path.mkdir()
    (path / ".study.json.part").write_text("{")
    assert demoa("sweep", spec, "--out", path, "--set", "run.rounds=6").returncode == 0


def test_two_sweeps_do_not_work_in_one_folder(spec, straight, tmp_path):
    folder = StudyFolder(straight)
    folder.open(folder.content())
    try:
        found = demoa("sweep", spec, "--out", straight)
    finally:
        folder.close()
    assert found.returncode == 2
    assert "another process is at work in" in found.stderr


def test_a_budget_is_written_down_and_kept(spec, tmp_path):
    path = tmp_path / "study"
    words = ("sweep", spec, "--out", path, "--budget", "10%")
    found = demoa(*words)
    assert found.returncode == 0, found.stderr
    assert "scaled: 1 of 2 seeds" in found.stdout
    content = StudyFolder(path).content()
    assert "1 of 2 seeds" in content["scaled"]
    assert content["scale"]["rounds"] < 120
    assert demoa(*words).returncode == 0


def test_own_parts_take_part_by_import_path(tmp_path):
    example = ROOT / "examples" / "own_parts.py"
    assert len(example.read_text().splitlines()) < 40
    words = ("sweep", example.with_suffix(".toml"), "--out", tmp_path / "own", "--set", "run.rounds=20")
    found = demoa(*words, cwd=tmp_path)  # they are found beside the study, wherever one is
    assert found.returncode == 0, found.stderr
    rows = table(tmp_path / "own")
    assert len(rows) == 16
    assert {row["aggregation.rule.name"] for row in rows} == {"own_parts:DropLongest", "krum"}
    assert {row["attack"] for row in rows} == {"alie", "own_parts:Reverse, strength 2"}


PAPER = sorted(file for kind in ("mnist*", "cifar10*") for file in (ROOT / "studies").glob(f"{kind}.toml"))


@pytest.mark.parametrize("file", PAPER, ids=lambda file: file.stem)
def test_the_papers_studies_are_what_its_tables_say(file):
    cells = expand(read_study(file))
    runs = sum(len(cell.runs) for cell in cells)
    baseline = file.stem.endswith("-baseline")
    assert runs == {"mnist": 4320, "mnist-slice": 72}.get(file.stem, 108 if baseline else 540)
    spec = cells[0].runs[0].spec
    assert (spec["clients"]["n"], spec["clients"]["byzantine"]) == ((20, 0) if baseline else (25, 5))
    assert spec["clients"]["batch_size"] == 32
    rounds = {"mnist": 300, "cifar10": 6000 if baseline else 30_000}[spec["task"]["dataset"]["name"]]
    assert {run.rounds for cell in cells for run in cell.runs} == {rounds}
    for cell in cells:
        assert len(cell.settings) == (9 if cell.labels["algorithm.name"] == "marina_pp" else 3)


def test_a_ray_of_ones_own_comes_to_the_same(spec, straight, tmp_path):
    words = ("sweep", spec, "--out", tmp_path / "study", "--engine", "ray", "--processes", 2)
    with tempfile.TemporaryDirectory(prefix="ray") as short:  # its sockets cannot have long names
        found = demoa(*words, env={**os.environ, "RAY_TMPDIR": short})
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    assert table(tmp_path / "study") == table(straight)
    assert outcome(tmp_path / "study") == outcome(straight)


OTHERS = {
    name: int(runs)
    for name, runs in re.findall(
        r"^\| `([\w-]+)\.toml` \| (\d+) \|", (ROOT / "docs" / "studies.md").read_text(), re.MULTILINE
    )
}


@pytest.mark.parametrize(("name", "runs"), OTHERS.items())
def test_studies_beyond_the_paper_have_the_runs_that_the_docs_say(name, runs):
    assert sum(len(cell.runs) for cell in expand(read_study(ROOT / "studies" / f"{name}.toml"))) == runs


def test_no_study_is_left_out_of_these_tests():
    assert {file.stem for file in (ROOT / "studies").glob("*.toml")} == {file.stem for file in PAPER} | set(OTHERS)


def test_decisions_compare_with_runs_of_the_papers_study():
    """So that what is known of them need not be played again."""
    known = {run.id for cell in expand(read_study(ROOT / "studies" / "mnist-cclip-p01.toml")) for run in cell.runs}
    for name in ("decision-clip", "decision-first-round", "decision-momentum", "decision-view", "designs", "majority"):
        runs = {run.id for cell in expand(read_study(ROOT / "studies" / f"{name}.toml")) for run in cell.runs}
        assert runs & known, name


def test_the_script_that_reproduces_all_names_every_study():
    text = (ROOT / "scripts" / "reproduce").read_text()
    named = set(re.search(r'all="([^"]*)"', text)[1].split())
    not_played = {"mnist", "mnist-slice", "mnist-baseline", "stores", "stores-rules"}
    not_played |= {"cifar10-baseline", "cifar10-cclip-p01", *(f"mnist-{rule}-p05" for rule in ("krum", "cm", "rfa"))}
    assert named | not_played == {file.stem for file in (ROOT / "studies").glob("*.toml")}
    assert not named & not_played
