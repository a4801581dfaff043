"""Final figures as tables, and whether what is compared differs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from demoa import results
from demoa.cli.main import app, main
from demoa.cli.table import markdown_differences, markdown_tables
from demoa.core.errors import ConfigError
from demoa.results import pairs, selection, tables
from demoa.results.archive import KeptSource
from demoa.results.run import RunResult
from demoa.results.selection import narrowed, read_together
from tests.made_up import altered, made_up

METRIC = "test_accuracy"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    holes = [("fedcm", "alie", "IID", 1)]
    return made_up(tmp_path_factory.mktemp("study") / "study", holes=holes, rounds=20, seeds=(0, 1, 2))


def test_cells_hold_the_runs_of_all_seeds_that_are_there(study):
    read = results.read_results(study)
    found = list(tables.final_tables(read, ["attack.name"], "algorithm.name", METRIC))
    assert [table.labels for table in found] == [{"split": "IID"}, {"split": "non-IID"}]
    assert set(found[0].cells[("alie",), "demoa"].values) == {0, 1, 2}
    assert set(found[0].cells[("alie",), "fedcm"].values) == {0, 2}
    finals = {run.seed: run.final for run in read.runs if run.cell["algorithm.name"] == "demoa"}
    assert found[1].cells[("alie",), "demoa"].values[2] == finals[2]["test_accuracy"]


@pytest.mark.parametrize(("way", "expected"), [("mean", 0.55), ("worst", 0.3)])
def test_cells_are_taken_together_seed_by_seed(study, way, expected):
    """Of the two attacks the one is the worse with seed 0, the other with seed 1."""
    worse = {("alie", 0): 0.2, ("bit_flip", 0): 0.9, ("alie", 1): 0.7, ("bit_flip", 1): 0.4}
    read = altered(study, lambda run: {"test_accuracy": worse.get((run.cell["attack.name"], run.seed), 0.6)})
    only = replace(read, runs=tuple(run for run in read.runs if run.seed < 2), seeds=(0, 1))
    (table,) = tables.final_tables(only, ["split"], "algorithm.name", METRIC, over=["attack.name"], way=way)
    assert table.rows == [("IID",), ("non-IID",)]
    cell = table.cells[("IID",), "demoa"]
    assert np.mean(list(cell.values.values())) == pytest.approx(expected)
    assert cell.runs == 4


def test_a_seed_that_one_of_the_cells_lacks_has_no_figure(study):
    read = results.read_results(study)
    (table,) = tables.final_tables(read, ["split"], "algorithm.name", METRIC, over=["attack.name"])
    assert set(table.cells[("IID",), "fedcm"].values) == {0, 2}
    assert "2 of 3 seeds" in markdown_tables(
        read, ["split"], "algorithm.name", "test_accuracy", ["attack.name"], "mean"
    )


def test_a_caption_says_where_nothing_could_be_called_a_difference(study, tmp_path):
    """Of 11 pairs, or of 7 seeds, some difference could be; of 2 seeds with one pair each none."""

    def said(read, by):
        return markdown_differences(read, "algorithm.name", "demoa", by, METRIC)

    read = results.read_results(study)
    assert "cannot come to" not in said(read, [])
    assert said(read, ["split", "attack.name"]).endswith("of the table, which so few pairs cannot come to.")
    seven = results.read_results(made_up(tmp_path / "seven", rounds=10, seeds=tuple(range(7))))
    assert "cannot come to" not in said(seven, [])
    assert said(seven, ["split"]).endswith("of the table, which so few seeds cannot come to.")


def test_pairs_that_are_level_count_for_nothing_in_what_p_could_be(study):
    read = altered(study, lambda run: {METRIC: 0.5 + 0.1 * (run.seed == 0 and run.cell["algorithm.name"] == "fedavg")})
    (found,) = [each for each in pairs.differences(read, "algorithm.name", "demoa", METRIC) if each.label == "fedavg"]
    assert found.pairs == 12
    assert found.least == 2.0**-3


def test_a_difference_says_whether_anything_was_tuned(study):
    """An axis of tuning with one value everywhere tunes nothing."""
    read = results.read_results(study)

    def said(setting_of):
        runs = tuple(replace(run, setting={"run.lr": setting_of(run)}) for run in read.runs)
        return markdown_differences(replace(read, runs=runs), "algorithm.name", "demoa", [], METRIC)

    assert "differ in algorithm alone;" in said(lambda run: "0.1")
    assert "differ in algorithm alone;" in said(lambda run: "0.01" if run.cell["attack.name"] == "alie" else "0.1")
    tuned = said(lambda run: "0.01" if run.cell["algorithm.name"] == "fedavg" else "0.1")
    assert "differ in algorithm and in what was tuned for it;" in tuned


def test_the_worst_of_losses_is_the_largest(study):
    read = altered(study, lambda run: {"test_loss": 3.0 if run.cell["attack.name"] == "alie" else 1.0})
    (table,) = tables.final_tables(read, ["split"], "algorithm.name", "test_loss", over=["attack.name"], way="worst")
    assert set(table.cells[("IID",), "demoa"].values.values()) == {3.0}


def test_nothing_is_taken_together_with_a_cell_that_is_not_settled(study):
    """A mean over fewer attacks than stand beside it would look like a better one."""
    read = results.read_results(study)
    runs = []
    for run in read.runs:
        if run.cell == {**run.cell, "attack.name": "alie", "split": "IID", "algorithm.name": "demoa"}:
            runs += [replace(run, setting={"run.lr": lr}, chosen=None) for lr in ("0.1", "0.01")]
        else:
            runs.append(run)
    unsettled = replace(read, runs=tuple(runs))
    (table,) = tables.final_tables(unsettled, ["split"], "algorithm.name", METRIC, over=["attack.name"])
    assert table.cells[("IID",), "demoa"].values == {}
    printed = markdown_tables(unsettled, ["split"], "algorithm.name", METRIC, ["attack.name"], "mean")
    assert "| IID | - | " in printed
    left_out = replace(unsettled, runs=tuple(run for run in runs if run.chosen))  # as if the study excluded it
    printed = markdown_tables(left_out, ["split"], "algorithm.name", METRIC, ["attack.name"], "mean")
    assert printed.count("1 of 2 taken together") == 1


def test_collapses_stand_beside_figures(study):
    read = altered(study, lambda run: {"test_accuracy": 0.5, "collapsed": run.seed == 1})
    printed = markdown_tables(read, ["split"], "algorithm.name", METRIC, ["attack.name"], "mean")
    assert printed.count("50.00 ± 0.00, 2 of 6 collapsed") == 8


def test_the_second_half_of_a_run_has_figures_of_its_own(tmp_path):
    """Accuracies rise on a line: at rounds 60 to 100 of 100 they are 0.6 to 1 of the last one."""
    read = results.read_results(made_up(tmp_path / "study", rounds=100, seeds=(0,)))
    run = next(run for run in read.runs if run.cell["algorithm.name"] == "demoa")
    assert run.figures["late_accuracy"] == pytest.approx(0.5 * 0.8)
    assert run.figures["lowest_late_accuracy"] == pytest.approx(0.5 * 0.6)
    (table,) = tables.final_tables(read, ["split", "attack.name"], "algorithm.name", "lowest_late_accuracy")
    assert table.cells[("IID", "alie"), "demoa"].values == {0: pytest.approx(0.3)}


def test_how_far_a_run_falls_is_measured_from_its_best_so_far():
    points = {"accuracy": [[10, 0.7], [20, 0.5], [30, 0.9], [40, 0.6], [50, 0.95]]}
    run = RunResult(
        "a", {}, {}, 0, True, "done", None, KeptSource({"majority": [], "points": points, "final": {"a": 1}})
    )
    assert run.figures["deepest_fall"] == pytest.approx(0.3)
    assert run.figures["majority_fall"] is None


def test_how_far_a_run_falls_at_majority_rounds_is_a_mean_over_the_measurements_around_them():
    """Round 20 is measured after it was played; nothing is measured before round 5, or after round 60."""
    points = {"accuracy": [[10, 0.7], [20, 0.5], [30, 0.9], [40, 0.6]]}
    kept = KeptSource({"majority": [5, 20, 21, 22, 60], "points": points, "final": {"a": 1}})
    run = RunResult("a", {}, {}, 0, True, "done", None, kept)
    assert run.figures["majority_fall"] == pytest.approx((0.2 - 0.4) / 2)


def test_a_run_that_diverges_late_has_no_mean_of_its_late_losses():
    """What comes with every round may be missing now and then: nobody honest took part."""
    points = {"loss": [[10, 0.5], [20, 0.4], [30, None]], "train_loss": [[10, 0.5], [20, None], [30, 0.3]]}
    line = {"majority": [], "points": points, "final": {"rounds": 30}}
    run = RunResult("a", {}, {}, 0, True, "done", None, KeptSource(line))
    assert "late_loss" not in run.figures
    assert run.figures["late_train_loss"] == 0.3


def test_rows_may_have_several_axes(study):
    (table,) = tables.final_tables(results.read_results(study), ["split", "attack.name"], "algorithm.name", METRIC)
    assert table.rows == [("IID", "alie"), ("IID", "bit_flip"), ("non-IID", "alie"), ("non-IID", "bit_flip")]


def one_difference(read, label, against):
    (found,) = [each for each in pairs.differences(read, "algorithm.name", against, METRIC) if each.label == label]
    return found


def test_only_runs_that_differ_in_nothing_else_are_paired(study):
    read = results.read_results(study)
    found = one_difference(read, "fedcm", "demoa")
    cells = len(read.axes["split"]) * len(read.axes["attack.name"])
    assert (found.pairs, found.missing) == (3 * cells - 1, 1)
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
    again = one_difference(read, "demoa", "fedcm")
    assert again.mean == pytest.approx(-found.mean)
    assert again.p == found.p


def test_a_difference_says_how_far_seeds_are_apart(tmp_path):
    """All pairs of a seed count as one: they share who takes part."""
    read = altered(
        made_up(tmp_path / "study", rounds=10),
        lambda run: {"test_accuracy": 0.5 + 0.1 * run.seed**2 * (run.cell["algorithm.name"] == "fedcm")},
    )
    found = one_difference(read, "fedcm", "demoa")
    assert found.mean == pytest.approx(np.mean([0, 0.1, 0.4]))
    assert found.spread == pytest.approx(np.std([0, 0.1, 0.4], ddof=1))
    alone = replace(read, runs=tuple(run for run in read.runs if run.seed == 1), seeds=(1,))
    assert one_difference(alone, "fedcm", "demoa").spread is None
    printed = markdown_differences(read, "algorithm.name", "demoa", [], METRIC)
    assert "+16.67** ± 20.82 (p-value " in printed
    assert "mean ± standard deviation over 3 seeds; p-values" in printed


def test_differences_in_groups_are_those_of_their_runs_and_corrected_together(study):
    read = altered(study, lambda run: {"test_accuracy": 0.5 + 0.1 * (run.cell["split"] == "IID") * hash_of(run)})
    found = pairs.differences(read, "algorithm.name", "demoa", METRIC, ["split"])
    assert [(each.group["split"], each.label) for each in found] == [
        (split, label) for split in ("IID", "non-IID") for label in ("fedavg", "fedcm", "marina_pp")
    ]
    for each in found:
        alone = pairs.differences(narrowed(read, {"split": [each.group["split"]]}), "algorithm.name", "demoa", METRIC)
        (same,) = [other for other in alone if other.label == each.label]
        assert (same.mean, same.pairs, same.p) == (each.mean, each.pairs, each.p)
        assert each.corrected >= each.p
    assert all(each.mean == 0 and each.p == 1 for each in found[3:])


def test_a_label_without_any_pair_is_said_to_be_missing(study):
    """It must not vanish, nor make the p of the others larger."""
    read = altered(
        study, lambda run: {} if run.cell["algorithm.name"] == "fedcm" else {"test_accuracy": 0.5 + 0.1 * hash_of(run)}
    )
    found = {each.label: each for each in pairs.differences(read, "algorithm.name", "demoa", METRIC)}
    assert list(found) == ["fedavg", "fedcm", "marina_pp"]
    lost = found.pop("fedcm")
    assert (lost.pairs, lost.missing) == (0, 12)
    assert np.isnan([lost.mean, lost.p, lost.corrected]).all()
    assert [each.corrected for each in found.values()] == pairs.holm([each.p for each in found.values()])
    printed = markdown_differences(read, "algorithm.name", "demoa", [], METRIC)
    assert "| ? (0 pairs, 12 missing) |" in printed
    assert ", 12 pairs)" in printed
    assert "correction for the 2 differences" in printed


def test_many_seeds_are_exchanged_as_a_whole(tmp_path):
    """Runs of a seed share who takes part: eight alike pairs of a seed are no more evidence than one."""
    made_up(tmp_path / "study", rounds=10, seeds=range(7))
    read = altered(tmp_path / "study", lambda run: {"test_accuracy": 0.1 * (run.cell["algorithm.name"] == "demoa")})
    assert one_difference(read, "demoa", "fedavg").p == pytest.approx(2 / 2**7)
    few = replace(read, seeds=(0, 1, 2), runs=tuple(run for run in read.runs if run.seed < 3))
    assert one_difference(few, "demoa", "fedavg").p == pytest.approx(2 / 2**12)


def hash_of(run):
    return sum(map(ord, run.cell["algorithm.name"] + run.cell["attack.name"])) * (run.seed + 3) % 17 / 17


def test_holm_is_no_stricter_than_bonferroni_and_keeps_the_order():
    chances = [0.04, 0.001, 0.03, 0.8, 0.01]
    corrected = pairs.holm(chances)
    assert corrected == pytest.approx([0.09, 0.005, 0.09, 0.8, 0.04])


def test_studies_are_read_as_one(tmp_path):
    for name in ("krum", "rfa"):
        made_up(tmp_path / name, rules=(name,), rounds=10)
    read = read_together([tmp_path / "krum", tmp_path / "rfa"])
    assert read.axes["aggregation.rule"] == ["krum", "rfa"]
    assert len(read.runs) == 2 * len(results.read_results(tmp_path / "krum").runs)
    assert len(read_together([tmp_path / "krum", tmp_path / "krum"]).runs) == len(read.runs) / 2
    krum = narrowed(read, {"aggregation.rule": ["krum"], "split": ["IID"]})
    assert {(run.cell["aggregation.rule"], run.cell["split"]) for run in krum.runs} == {("krum", "IID")}
    assert krum.axes["split"] == ["IID"]


def test_the_better_copy_of_a_run_is_kept(tmp_path):
    for name, holes in (("whole", []), ("holes", [("fedcm", "alie", "IID", 1)])):
        made_up(tmp_path / name, rounds=10, holes=holes)
    for order in (["whole", "holes"], ["holes", "whole"]):
        assert {run.status for run in read_together([tmp_path / name for name in order]).runs} == {"done"}


def test_studies_that_contradict_each_other_are_not_read_as_one(tmp_path, monkeypatch):
    made_up(tmp_path / "one", rounds=10)
    made_up(tmp_path / "fewer", rounds=10, seeds=(0, 1))
    with pytest.raises(ConfigError, match="are over other seeds; read them one by one"):
        read_together([tmp_path / "one", tmp_path / "fewer"])
    read = results.read_results(tmp_path / "one")
    other = replace(read, runs=tuple(replace(run, id=f"other {run.id}", setting={"run.lr": "7"}) for run in read.runs))
    turned = replace(read, runs=tuple(replace(run, chosen=not run.chosen) for run in read.runs))
    found = {"one": read, "other": other, "turned": turned}
    monkeypatch.setattr(selection, "read_results", found.__getitem__)
    for name in ("other", "turned"):
        with pytest.raises(ConfigError, match="chose different settings for one cell"):
            read_together(["one", name])


def test_labels_that_were_left_out_of_the_study_are_gone(study):
    """A hole is a run that should be there; a cell that no run should have is none."""
    read = results.read_results(study)
    partial = replace(
        read, runs=tuple(run for run in read.runs if (run.cell["split"], run.cell["attack.name"]) != ("IID", "alie"))
    )
    assert partial.axes["attack.name"] == ["alie", "bit_flip"]
    assert narrowed(partial, {"split": ["IID"]}).axes["attack.name"] == ["bit_flip"]
    assert narrowed(partial, {"split": ["non-IID"]}).axes["attack.name"] == ["alie", "bit_flip"]


def test_a_label_may_have_a_comma(study):
    read = results.read_results(study)
    named = replace(
        read,
        axes=read.axes | {"split": ["one, two", "non-IID"]},
        runs=tuple(
            replace(run, cell=run.cell | {"split": "one, two"}) if run.cell["split"] == "IID" else run
            for run in read.runs
        ),
    )
    assert narrowed(named, {"split": ["one, two"]}).axes["split"] == ["one, two"]
    assert narrowed(named, {"attack.name": ["alie, bit_flip"]}).axes["attack.name"] == ["alie", "bit_flip"]


def test_studies_that_compare_other_things_are_not_read_as_one(study, tmp_path):
    other = Path(__file__).parents[2] / "docs" / "results" / "stores.jsonl"
    with pytest.raises(ConfigError, match=r"do not compare the same things: one of them alone has .*store"):
        read_together([study, other])


@pytest.mark.parametrize("count", [6, 30])
def test_chance_is_seldom_taken_for_a_difference(count):
    draw = np.random.default_rng(0)
    found = np.array([pairs.exchanged(draw.standard_normal(count)) for _ in range(24)])
    assert (found <= 0.1).mean() <= 0.25
    assert 0.3 <= found.mean() <= 0.7
    assert pairs.exchanged(1 + 0.1 * draw.standard_normal(count)) <= 2 * 0.5**6


def test_exchange_is_exact_for_few_pairs():
    assert pairs.exchanged(np.array([3.0, 2.0, 1.0])) == 2 / 8
    assert pairs.exchanged(np.array([3.0, -2.0, -1.0])) == 1.0
    assert pairs.exchanged(np.array([3.0, 2.0, -1.0])) == 4 / 8


def test_the_command_prints_markdown(study, tmp_path):
    results.export(study, tmp_path / "kept.jsonl")
    words = ["--rows", "attack.name", "--columns", "algorithm.name", "--against", "fedavg"]
    found = [CliRunner().invoke(app, ["table", str(path), *words]) for path in (study, tmp_path / "kept.jsonl")]
    assert found[0].exit_code == 0
    assert found[0].output == found[1].output
    assert "| attack | DeMoA | FedAvg |" in found[0].output
    assert "Difference from FedAvg" in found[0].output
    assert " ± " in found[0].output


def test_bad_requests_are_refused(study, capsys):
    read = results.read_results(study)
    with pytest.raises(ConfigError, match=r"unknown axis 'attack'; did you mean 'attack.name'"):
        list(tables.final_tables(read, ["attack"], "algorithm.name", METRIC))
    with pytest.raises(ConfigError, match="named twice among split, split"):
        list(tables.final_tables(read, ["split"], "split", METRIC))
    for where, line in (({"spl": ["IID"]}, "did you mean 'split'"), ({"split": ["iid"]}, "Allowed: IID, non-IID")):
        with pytest.raises(ConfigError, match=line):
            narrowed(read, where)
    for words, line in (
        (["--against", "demo"], "did you mean 'demoa'"),
        (["--mean", "attack.name", "--worst", "attack.name"], "give either --mean or --worst"),
        (["--by", "split"], "give --against as well"),
        (["--metric", "setting", "--against", "demoa"], "settings are words"),
        (["--against", "demoa", "--by", "split,split"], "named twice among algorithm.name, split, split"),
        (["--against", "demoa", "--where", "algorithm.name=demoa"], "no other label than demoa to compare with"),
        (["--where", "split"], "must be axis=label or axis=label,label, got 'split'"),
    ):
        with pytest.raises(SystemExit):
            main(["table", str(study), "--rows", "split", "--columns", "algorithm.name", *words])
        assert line in capsys.readouterr().err


def test_a_cell_whose_tuning_is_not_settled_has_no_figure(tmp_path):
    read = results.read_results(made_up(tmp_path / "study", rounds=10))
    halves = [replace(run, setting={"run.lr": lr}, chosen=None) for run in read.runs for lr in ("0.1", "0.01")]
    unsettled = replace(read, runs=tuple(halves))
    with pytest.raises(ConfigError, match="no cell is settled yet"):
        tables.finals(unsettled, METRIC)
    with pytest.raises(ConfigError, match="unknown final figure 'acuracy'"):
        tables.finals(read, "acuracy")
