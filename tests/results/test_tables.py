"""Final figures as tables, and whether what is compared differs."""

import numpy as np
import pytest
from typer.testing import CliRunner

from demoa import results
from demoa.cli.main import app, main
from demoa.core.errors import ConfigError
from demoa.results import tables
from tests.made_up import made_up


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    holes = [("fedcm", "alie", "IID", 1)]
    return made_up(tmp_path_factory.mktemp("study") / "study", holes=holes, rounds=20, seeds=(0, 1, 2))


def test_cells_hold_the_runs_of_all_seeds_that_are_there(study):
    read = results.read_results(study)
    found = list(tables.final_tables(read, "attack.name", "algorithm.name"))
    assert [table.labels for table in found] == [{"split": "IID"}, {"split": "non-IID"}]
    assert set(found[0].cells["alie", "demoa"].values) == {0, 1, 2}
    assert set(found[0].cells["alie", "fedcm"].values) == {0, 2}
    finals = {run.seed: run.final for run in read.runs if run.cell["algorithm.name"] == "demoa"}
    assert found[1].cells["alie", "demoa"].values[2] == finals[2]["test_accuracy"]


def test_only_runs_that_differ_in_nothing_else_are_paired(study):
    read = results.read_results(study)
    found = tables.difference(read, "algorithm.name", "fedcm", "demoa")
    cells = len(read.axes["split"]) * len(read.axes["attack.name"])
    assert found.pairs == 3 * cells - 1  # one run is missing
    one, other = (
        {
            (run.cell["split"], run.cell["attack.name"], run.seed): run.final.get("test_accuracy")
            for run in read.runs
            if run.cell["algorithm.name"] == name
        }
        for name in ("fedcm", "demoa")
    )
    expected = [one[key] - other[key] for key in one if one[key] is not None]
    assert found.mean == pytest.approx(np.mean(expected))
    again = tables.difference(read, "algorithm.name", "demoa", "fedcm")
    assert again.mean == pytest.approx(-found.mean)
    assert again.p == found.p


@pytest.mark.parametrize("count", [6, 30])
def test_chance_is_seldom_taken_for_a_difference(count):
    draw = np.random.default_rng(0)
    found = np.array([tables.exchanged(draw.standard_normal(count)) for _ in range(24)])
    assert (found <= 0.1).mean() <= 0.25
    assert 0.3 <= found.mean() <= 0.7
    assert tables.exchanged(1 + 0.1 * draw.standard_normal(count)) <= 2 * 0.5**6


def test_exchange_is_exact_for_few_pairs():
    assert tables.exchanged(np.array([3.0, 2.0, 1.0])) == 2 / 8
    assert tables.exchanged(np.array([3.0, -2.0, -1.0])) == 1.0
    assert tables.exchanged(np.array([3.0, 2.0, -1.0])) == 4 / 8


def test_the_command_prints_markdown(study, tmp_path):
    results.export(study, tmp_path / "kept.jsonl")
    words = ["--rows", "attack.name", "--columns", "algorithm.name", "--against", "fedavg"]
    found = [CliRunner().invoke(app, ["table", str(path), *words]) for path in (study, tmp_path / "kept.jsonl")]
    assert found[0].exit_code == 0
    assert found[0].output == found[1].output
    assert "| attack | DeMoA | FedAvg |" in found[0].output
    assert "| DeMoA | " in found[0].output
    assert " ± " in found[0].output


def test_bad_requests_are_refused(study, capsys):
    read = results.read_results(study)
    with pytest.raises(ConfigError, match=r"unknown axis 'attack'; did you mean 'attack.name'"):
        list(tables.final_tables(read, "attack", "algorithm.name"))
    with pytest.raises(ConfigError, match="name two axes"):
        list(tables.final_tables(read, "split", "split"))
    with pytest.raises(SystemExit):
        main(["table", str(study), "--rows", "split", "--columns", "algorithm.name", "--against", "demo"])
    assert "did you mean 'demoa'" in capsys.readouterr().err


def test_a_cell_whose_tuning_is_not_settled_has_no_figure(tmp_path):
    from dataclasses import replace

    read = results.read_results(made_up(tmp_path / "study", rounds=10))
    halves = [replace(run, setting={"run.lr": lr}, chosen=None) for run in read.runs for lr in ("0.1", "0.01")]
    unsettled = replace(read, runs=tuple(halves))
    assert tables.finals(unsettled, "test_accuracy") == {}
    with pytest.raises(ConfigError, match="unknown final figure 'acuracy'"):
        tables.finals(read, "acuracy")
