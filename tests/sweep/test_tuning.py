"""Who goes on and who is chosen, from scores alone."""

import pytest

from demoa.core.errors import ConfigError
from demoa.sweep.budget import Scale, estimated_seconds, find_scale, parse_budget, scaled
from demoa.sweep.grid import Cell, PlannedRun, Setting, expand
from demoa.sweep.study import Tune, read_study
from demoa.sweep.tuning import Rung, Seen, rungs, stage


def cell_of(settings, seeds=2, rounds=90):
    def run(setting, seed):
        return PlannedRun(f"{setting}-{seed}", seed, {"run": {"rounds": rounds}}, 1.0)

    return Cell(
        {}, tuple(Setting({"lr": str(s)}, tuple(run(s, seed) for seed in range(seeds))) for s in range(settings))
    )


def scored(accuracy, rounds, failed=()):
    """Scores of every run at some rounds: accuracy(setting, seed, round)."""

    def look(run):
        setting, seed = map(int, run.id.split("-"))
        found = {r: {"validation_accuracy": accuracy(setting, seed, r), "validation_loss": 1.0} for r in rounds}
        return Seen(failed=run.id in failed, scores={} if run.id in failed else found)

    return look


def test_rungs_keep_a_share_for_longer():
    assert rungs(Tune("halving"), 9, 270) == (Rung(30, 3), Rung(90, 1))
    assert rungs(Tune("halving"), 3, 300) == (Rung(100, 1),)
    assert rungs(Tune("halving"), 4, 300) == (Rung(34, 2), Rung(100, 1))
    assert rungs(Tune("halving", eta=2), 8, 80) == (Rung(10, 4), Rung(20, 2), Rung(40, 1))
    assert rungs(Tune("halving", least_rounds=50), 9, 270) == (Rung(90, 1),)
    assert rungs(Tune("halving", least_rounds=50, keep=2), 9, 270) == (Rung(90, 2),)
    assert rungs(Tune("halving", keep=4), 9, 270) == (Rung(30, 4),)
    assert rungs(Tune("halving", keep=3), 3, 270) == ()
    assert rungs(Tune("halving"), 1, 300) == ()
    assert rungs(Tune("grid"), 9, 300) == ()


def test_a_grid_plays_everything_and_chooses_the_best_mean():
    cell = cell_of(3)
    begin = stage(Tune("grid"), cell, scored(lambda *_: 0.0, []))
    assert [(run.id, until) for run, until in begin.pending] == [(run.id, 90) for run in cell.runs]
    # Setting 1 has the best seed, setting 2 the best mean.
    table = {(0, 0): 0.5, (0, 1): 0.6, (1, 0): 0.9, (1, 1): 0.3, (2, 0): 0.65, (2, 1): 0.65}
    end = stage(Tune("grid"), cell, scored(lambda s, seed, r: table[s, seed], [90]))
    assert end.pending == ()
    assert end.chosen is cell.settings[2]


def test_halving_drops_the_worst_at_each_pause():
    cell, tune = cell_of(9), Tune("halving")
    merit = scored(lambda s, seed, r: s / 10, [10])
    found = stage(tune, cell, merit)
    assert [setting.labels["lr"] for setting in found.dropped] == ["0", "1", "2", "3", "4", "5"]
    assert {until for _, until in found.pending} == {30}
    assert {run.id[0] for run, _ in found.pending} == {"6", "7", "8"}
    assert found.later == 2 * (90 - 30)
    found = stage(tune, cell, scored(lambda s, seed, r: s / 10 if r == 10 else -s / 10, [10, 30]))
    assert {run.id[0] for run, _ in found.pending} == {"6"}
    found = stage(tune, cell, scored(lambda s, seed, r: s / 10, [10, 30, 90]))
    assert found.chosen is cell.settings[8]
    assert len(found.dropped) == 8


def test_what_was_played_before_is_not_counted_as_still_to_come():
    """One setting of two is through, and the other begins anew: only its rounds are left."""
    cell, tune = cell_of(3), Tune("halving", least_rounds=30, keep=2)

    def look(run):
        score = {"validation_accuracy": 0.5, "validation_loss": 1.0}
        through = {"0": [], "1": [30, 90], "2": [30]}[run.id.split("-")[0]]
        return Seen(failed=False, scores=dict.fromkeys(through, score))

    found = stage(tune, cell, look)
    assert [(run.id, until) for run, until in found.pending] == [("0-0", 30), ("0-1", 30)]
    assert found.later == 2 * (90 - 30)


def test_a_setting_with_a_failed_seed_is_not_averaged_over_fewer():
    cell = cell_of(2)
    found = stage(Tune("grid"), cell, scored(lambda s, seed, r: 1.0 - s / 2, [90], failed={"0-1"}))
    assert found.chosen is cell.settings[1]


def test_a_pause_that_was_settled_stays_settled_when_the_best_fails_later():
    cell, tune = cell_of(3, seeds=2), Tune("halving")

    def look(run):
        setting = int(run.id[0])
        scores = {30: {"validation_accuracy": 1.0 - setting / 10, "validation_loss": 1.0}}
        return Seen(failed=run.id == "0-0", scores=scores)

    found = stage(tune, cell, look)
    assert [run.id for run, _ in found.pending] == ["0-1"]
    assert [setting.labels["lr"] for setting in found.dropped] == ["1", "2"]


def test_a_setting_that_diverged_comes_before_one_that_failed():
    cell = cell_of(2, seeds=1)

    def look(run):
        failed = run.id == "0-0"
        return Seen(failed, {} if failed else {90: {"validation_loss": None}})

    assert stage(Tune("grid"), cell, look).chosen is cell.settings[1]


def test_ties_go_to_the_lower_loss_then_to_the_first():
    cell = cell_of(3, seeds=1)
    losses = {"0-0": 2.0, "1-0": 1.0, "2-0": 1.0}

    def look(run):
        return Seen(False, {90: {"validation_accuracy": 0.5, "validation_loss": losses[run.id]}})

    assert stage(Tune("grid"), cell, look).chosen is cell.settings[1]


def test_without_labels_the_lowest_loss_wins_and_an_infinite_one_loses():
    cell = cell_of(3, seeds=1)
    losses = {"0-0": 2.0, "1-0": None, "2-0": 1.0}
    found = stage(Tune("grid"), cell, lambda run: Seen(False, {90: {"validation_loss": losses[run.id]}}))
    assert found.chosen is cell.settings[2]


def test_every_setting_failed():
    cell = cell_of(2, seeds=1)
    found = stage(Tune("halving"), cell, scored(lambda *_: 0.0, [], failed={"0-0", "1-0"}))
    assert found.pending == ()
    assert found.chosen is not None


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        "seeds = [0, 1, 2]\n[spec.run]\nrounds = 300\neval_every = 30\n[axes]\nattack.name = ['alie', 'ipm']\n"
        "[tune]\nover.run.lr = [0.1, 0.01, 0.001]\n"
    )
    return read_study(path)


@pytest.mark.parametrize(
    ("budget", "size"),
    [
        ("100%", ("grid", 3, 300)),
        ("60%", ("halving", 3, 300)),  # 500 of 900 rounds
        ("40%", ("halving", 2, 300)),
        ("20%", ("halving", 1, 300)),
        ("10%", ("halving", 1, 162)),
        ("0.1%", ("halving", 1, 10)),
    ],
)
def test_a_budget_takes_tuning_then_seeds_then_rounds(study, budget, size):
    scale = find_scale(study, expand(study), budget, slots=2)
    assert (scale.method, scale.seeds, scale.rounds) == size


def test_a_scaled_study_says_what_is_smaller(study):
    smaller = scaled(study, expand(study), Scale("10%", "halving", 1, 150))
    assert smaller.scaled == (
        "tuning by successive halving in place of the whole grid",
        "1 of 3 seeds",
        "150 of 300 rounds",
    )
    run = expand(smaller)[0].runs[0]
    assert run.rounds == 150
    assert run.spec["run"]["eval_every"] == 15
    assert smaller.identity != study.identity


def test_a_budget_of_time_is_measured(study):
    cells = expand(study)
    whole = estimated_seconds(study.tune, cells, slots=2)
    # Far from where the size changes: the estimate is measured anew, on a machine that may be busier than before.
    assert find_scale(study, cells, f"{whole / 200:.6f}s", slots=2).rounds < 300
    assert find_scale(study, cells, f"{whole * 100:.6f}s", slots=2).method == "grid"


def test_a_scaled_study_is_as_large_as_its_budget(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        "[spec.run]\nrounds = 300\n[axes]\nalgorithm.name = ['demoa', 'marina_pp']\n"
        "[tune]\nover.run.lr = {from = 1, to = 9}\nleast_rounds = 30\n"
    )
    study = read_study(path)
    whole = 2 * 9 * 300
    for share in (50, 20, 10, 5, 3):
        cells = expand(study)
        smaller = scaled(study, cells, find_scale(study, cells, f"{share}%", slots=2))
        played = 0
        for cell in expand(smaller):
            before, alive = 0, len(cell.settings)
            for rung in (*rungs(smaller.tune, alive, cell.runs[0].rounds), Rung(cell.runs[0].rounds, 1)):
                played += alive * (rung.rounds - before)
                before, alive = rung.rounds, rung.keep
        assert played <= share / 100 * whole
        assert played > 0.8 * min(share / 100, 704 / 2700) * whole


@pytest.mark.parametrize("axis", ["run.rounds = [300]", "run.eval_every = [10, 20]"])
def test_a_study_that_compares_lengths_is_not_scaled(tmp_path, axis):
    path = tmp_path / "study.toml"
    path.write_text(f"[axes]\n{axis}\n")
    study = read_study(path)
    with pytest.raises(ConfigError, match="--budget cannot scale a study that compares run"):
        find_scale(study, expand(study), "10%", slots=2)


@pytest.mark.parametrize("text", ["10", "ten", "-5%", "0%", "5 weeks", "1.2.3h", ""])
def test_bad_budgets_are_refused(text):
    with pytest.raises(Exception, match="such as 10% or 2h"):
        parse_budget(text)
