"""A study in one file."""

import json

import pytest
from rich.console import Console

from demoa import results
from demoa.cli.compare import compare_runs
from demoa.core.errors import ConfigError, StoreError
from demoa.report.page import write_report
from demoa.results.archive import restore
from demoa.results.study import StudyFolder
from tests.made_up import made_up


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("study") / "study", holes=[("fedcm", "alie", "IID", 1)], rounds=20)


def test_a_report_on_it_is_the_report_on_the_study(study, tmp_path):
    count = results.export(study, tmp_path / "kept.jsonl")
    assert count == len(results.read_results(study).runs)
    page = write_report(tmp_path / "kept.jsonl")
    assert page == tmp_path / "kept.html"
    expected = write_report(study, tmp_path / "other" / "report.html")
    assert page.read_text() == expected.read_text()
    for path in (tmp_path / "figures").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / "figures" / path.name).read_bytes()


def test_tables_of_it_are_those_of_the_study(study, tmp_path):
    results.export(study, tmp_path / "kept.jsonl")
    assert results.load(tmp_path / "kept.jsonl").equals(results.load(study))


def test_single_rounds_are_not_in_it(study, tmp_path):
    results.export(study, tmp_path / "kept.jsonl")
    with pytest.raises(ConfigError, match="holds no records of single rounds; use the study's folder"):
        results.load(tmp_path / "kept.jsonl", "rounds")
    with pytest.raises(ConfigError, match="holds no records of single rounds"):
        results.export(study, tmp_path / "rounds.jsonl", "rounds")


@pytest.mark.parametrize(
    "content", ["", "{}", '{"format": "other"}', '{"format": "demoa study 1"}', "not JSON", "\xff"]
)
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "other.jsonl").write_text(content)
    with pytest.raises(
        StoreError, match=r"does not hold a study \(line 1\); make it with demoa export FOLDER NAME.jsonl"
    ):
        results.read_results(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.pop("final"),
        lambda line: line.update(final="good"),
        lambda line: line["final"].update(test_accuracy="good"),
        lambda line: line["spec"].pop("run"),
        lambda line: line.update(scores={"x": {}}),
        lambda line: line["cell"].pop("split"),
        lambda line: line.update(points={"loss": [1]}),
        lambda line: line.update(seed="0"),
        lambda line: line.update(machines=[3]),
    ],
)
def test_a_damaged_line_is_named(study, tmp_path, damage):
    results.export(study, tmp_path / "kept.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    damage(lines[4])
    (tmp_path / "kept.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(StoreError, match=r"does not hold a study \(line 5\)"):
        results.read_results(tmp_path / "kept.jsonl")


@pytest.mark.parametrize("kept", [1, 2, 40])
def test_a_file_that_was_cut_off_between_two_lines_is_refused(study, tmp_path, kept):
    """A cell whose best setting is among the lost lines would else be judged by another."""
    results.export(study, tmp_path / "kept.jsonl")
    lines = (tmp_path / "kept.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "kept.jsonl").write_text("".join(lines[:kept]))
    with pytest.raises(StoreError, match=rf"holds {kept - 1} runs, and its first line says {len(lines) - 1}"):
        results.read_results(tmp_path / "kept.jsonl")


def test_a_figure_that_is_no_number_is_damage(study, tmp_path):
    results.export(study, tmp_path / "kept.jsonl")
    lines = (tmp_path / "kept.jsonl").read_text().splitlines()
    line = json.loads(lines[1])
    line["final"]["test_accuracy"] = float("nan")
    (tmp_path / "kept.jsonl").write_text("\n".join([lines[0], json.dumps(line), *lines[2:]]))
    with pytest.raises(StoreError, match=r"does not hold a study \(line 2\)"):
        results.read_results(tmp_path / "kept.jsonl")


def test_a_layout_of_another_study_is_damage(study, tmp_path):
    results.export(study, tmp_path / "kept.jsonl")
    about, *lines = (tmp_path / "kept.jsonl").read_text().splitlines()
    changed = {**json.loads(about), "layout": {"rows": "x"}}
    (tmp_path / "kept.jsonl").write_text("\n".join([json.dumps(changed), *lines]))
    with pytest.raises(StoreError, match=r"does not hold a study \(line 1\)"):
        results.read_results(tmp_path / "kept.jsonl")


def test_a_file_that_cannot_be_written_gets_one_line(study, tmp_path):
    with pytest.raises(StoreError, match=r"there is no folder .*new; make it first"):
        results.export(study, tmp_path / "new" / "kept.jsonl")


def test_a_run_without_records_is_compared_by_what_is_drawn_of_it(study, tmp_path, capsys):
    results.export(study, tmp_path / "kept.jsonl")
    other = StudyFolder(tmp_path / "other")
    other.open(StudyFolder(study).content())
    assert restore(tmp_path / "kept.jsonl", other, lambda run: run.seed == 0) == 16
    other.close()
    for run in (tmp_path / "other" / "runs").iterdir():
        said = []
        for folder in (study / "runs" / run.name, run):
            compare_runs([folder], Console())
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]
