"""A study in one file."""

import pytest

from demoa import results
from demoa.core.errors import ConfigError, StoreError
from demoa.report.page import write_report
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


@pytest.mark.parametrize("content", ["", "{}", '{"format": "other"}', '{"format": "demoa study 1"}', "not JSON"])
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "other.jsonl").write_text(content)
    with pytest.raises(StoreError, match=r"does not hold a study; make it with demoa export FOLDER other.jsonl"):
        results.read_results(tmp_path / "other.jsonl")
