"""From TOML to a grid of runs; and what is wrong with a study, in one line."""

import pytest

from demoa.core.errors import ConfigError
from demoa.sweep.grid import expand
from demoa.sweep.study import read_study


def study(tmp_path, text, name="study.toml", **parents):
    for parent, content in parents.items():
        (tmp_path / f"{parent}.toml").write_text(content)
    path = tmp_path / name
    path.write_text(text)
    return read_study(path)


GRID = """
seeds = [0, 1, 2]
[spec.clients]
n = 10
byzantine = 2
[axes]
attack.name = ["alie", "ipm"]
algorithm.name = ["demoa", "marina_pp"]
[axes.split]
IID = {task.partition = "iid"}
non-IID = {task.partition = "by_label", aggregation.mixing = ["bucketing"]}
[tune]
over.run.lr = [0.1, 0.01]
[[tune.extra]]
where = {algorithm.name = "marina_pp"}
over.algorithm.radius = {from = 1.0, to = 100.0, count = 3, scale = "log"}
"""


def test_every_combination_is_a_cell_and_every_seed_a_run(tmp_path):
    cells = expand(study(tmp_path, GRID))
    assert len(cells) == 8
    assert {len(cell.settings) for cell in cells if cell.labels["algorithm.name"] == "demoa"} == {2}
    (marina, *_) = [cell for cell in cells if cell.labels["algorithm.name"] == "marina_pp"]
    assert [setting.labels for setting in marina.settings][:3] == [
        {"run.lr": "0.1", "algorithm.radius": "1"},
        {"run.lr": "0.1", "algorithm.radius": "10"},
        {"run.lr": "0.1", "algorithm.radius": "100"},
    ]
    assert all([run.seed for run in setting.runs] == [0, 1, 2] for setting in marina.settings)
    runs = [run for cell in cells for run in cell.runs]
    assert len({run.id for run in runs}) == len(runs) == 3 * (4 * 2 + 4 * 6)
    split = next(cell for cell in cells if cell.labels["split"] == "non-IID").runs[0].spec
    assert split["task"]["partition"]["name"] == "by_label"
    assert [step["name"] for step in split["aggregation"]["mixing"]] == ["bucketing"]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("{from = 1, to = 3}", [1, 2, 3]),
        ("{from = 2, to = 9, step = 3}", [2, 5, 8]),
        ("{from = 4, to = 4}", [4]),
    ],
)
def test_ranges_of_whole_numbers(tmp_path, written, values):
    cells = expand(study(tmp_path, f"[axes]\nclients.local_steps = {written}\n"))
    assert [cell.runs[0].spec["clients"]["local_steps"] for cell in cells] == values


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("{from = 0.1, to = 0.5, step = 0.2}", [0.1, 0.3, 0.5]),
        ("{from = 0.2, to = 1, count = 3}", [0.2, 0.6, 1.0]),
        ('{from = 0.001, to = 0.1, count = 3, scale = "log"}', [0.001, 0.01, 0.1]),
    ],
)
def test_ranges_of_numbers(tmp_path, written, values):
    cells = expand(study(tmp_path, f"[axes]\nrun.lr = {written}\n"))
    assert [cell.runs[0].spec["run"]["lr"] for cell in cells] == values


def test_exclusions_leave_cells_out(tmp_path):
    text = 'exclude = [{attack.name = ["alie", "mimic"], sampling.p = 0.5}]\n'
    axes = '[axes]\nattack.name = ["alie", "ipm", "mimic"]\nsampling.p = [0.1, 0.5]\n'
    labels = [tuple(cell.labels.values()) for cell in expand(study(tmp_path, text + axes))]
    assert labels == [("alie", "0.1"), ("ipm", "0.1"), ("ipm", "0.5"), ("mimic", "0.1")]


def test_a_study_can_extend_another(tmp_path):
    made = study(tmp_path, 'extends = "grid.toml"\ntitle = "less"\n[axes]\nattack.name = ["mimic"]\n', grid=GRID)
    assert made.title == "less"
    assert {cell.labels["attack.name"] for cell in expand(made)} == {"mimic"}
    assert len(expand(made)) == 4


def test_an_axis_replaces_that_of_the_parent_and_leaves_its_siblings(tmp_path):
    parent = """
[axes]
attack.name = ["alie", "ipm"]
clients.n = {from = 12, to = 20, step = 4}
[axes.split]
IID = {task.partition = "iid"}
non-IID = {task.partition = "by_label"}
"""
    child = """
extends = "parent.toml"
[axes]
clients.n = {from = 12, to = 20, count = 2}
split.IID = {task.partition = "iid"}
"""
    found = study(tmp_path, child, parent=parent).axes
    labels = {axis.name: [choice.label for choice in axis.choices] for axis in found}
    assert labels == {"attack.name": ["alie", "ipm"], "clients.n": ["12", "20"], "split": ["IID"]}


def test_what_is_tuned_in_some_cells_may_name_several(tmp_path):
    text = """
[axes]
algorithm.name = ["demoa", "fedcm", "fedavg"]
[tune]
over.run.lr = [0.1]
[[tune.extra]]
where = {algorithm.name = ["demoa", "fedcm"]}
over.algorithm.alpha = [0.5, 0.9]
"""
    assert [len(cell.settings) for cell in expand(study(tmp_path, text))] == [2, 2, 1]


def test_an_empty_list_of_mixings_can_be_excluded(tmp_path):
    text = 'exclude = [{aggregation.mixing = []}]\n[axes]\naggregation.mixing = [[], ["bucketing"]]\n'
    assert [cell.labels["aggregation.mixing"] for cell in expand(study(tmp_path, text))] == ["bucketing"]


@pytest.mark.parametrize("setting", ["run.lr=1", "attack.z=1", "attack.name=ipm"])
def test_a_setting_that_an_axis_overrides_is_refused(tmp_path, setting):
    path = tmp_path / "study.toml"
    path.write_text('[axes]\nrun.lr = [1]\nattack = ["alie", "ipm"]\n')
    with pytest.raises(ConfigError, match="would be overridden by the axis"):
        read_study(path, [setting])


def test_words_and_looks_do_not_make_another_study(tmp_path):
    one = study(tmp_path, GRID)
    other = study(tmp_path, 'title = "another title"\n' + GRID + '[report]\nrows = "split"\n')
    third = study(tmp_path, GRID.replace("[0, 1, 2]", "[0, 1]"))
    assert one.identity == other.identity != third.identity


WRONG = [
    ("[attack]\nname = 'alie'\n[axes]\nrun.lr = [0.1]", r"study.toml has attack, sections of a spec: .*in \[spec\]"),
    ("[axes]\nrun.lrr = [0.1]", "unknown key in run 'lrr'; did you mean 'lr'.*in run.lrr = 0.1"),
    ("[axes]\nrun.lr = []", "axes: run.lr is empty; give it at least one value"),
    ("[axes]\nrun.lr = 0.1", "axes: run.lr must be a list or a range"),
    ("[axes]\nrun.lr = [0.1, 0.10]", "axes: run.lr has 0.1 twice"),
    ("[axes]\nrun.lr = {from = 0.1}", "a range has from and to"),
    ("[axes]\nrun.lr = {from = 0.1, to = 1, steps = 3}", "did you mean 'step'"),
    ('[axes]\nrun.lr = {from = 0, to = 1, count = 3, scale = "log"}', "must be above 0"),
    ("[axes]\nrun.rounds = {from = 5, to = 1}", "run.rounds is empty"),
    ("[axes]\nrun.seed = [0, 1]", r"run.seed is what runs are repeated over; use seeds = \[0, 1\]"),
    ("[spec.run]\nseed = 7", r"run.seed is what runs are repeated over; use seeds = \[0, 1\]"),
    ("[tune]\nover.run.rounds = [10, 20]", "run.rounds cannot be tuned"),
    ("[axes]\nclients = {}", "axes: clients must be a list or a range"),
    ("[axes]\nsampling.p = ['x', 0.1]", "in sampling.p = x"),
    ("[axes]\nsampling.p = [[[0.1]]]", "in sampling.p = 0.1"),
    ("[axes]\naggregation.rule = ['.mine:Rule']", "'.mine:Rule' cannot be imported"),
    ("[axes]\ntask.partition = [{name = 'dirichlet', alpha = [1]}]", "in task.partition = dirichlet"),
    ("seeds = {}", "seeds must be a list or a range"),
    ("seeds = {a = [1]}", "seeds must be a list or a range"),
    ("[axes]\nrun.lr = [1]\n[report]\nrows = 'run.lr'\ncurves = 'run.lr'", "report has run.lr twice"),
    ("[axes]\nsplit = [1, 2]", "split is neither a key of the spec"),
    ('[axes.split]\none = {tsk.partition = "iid"}', "unknown section in .*'tsk.partition'"),
    ('[axes]\nattack.name = ["alie", "alien"]', "unknown attack 'alien'.*in attack.name = alien"),
    ('[axes]\nattack.name = ["alie", "bit_flip", "BF"]', "two runs are the same: .*bit_flip; and: .*BF"),
    ('[axes.same]\na = {task.partition = "iid"}\nb = {task.partition = "iid"}', "two runs are the same"),
    ("seeds = []", "seeds must be a list or a range"),
    ("seeds = [1, 1]", "the same seed twice"),
    ("seed = [1]", "unknown key in .* 'seed'; did you mean 'seeds'"),
    ("[spec.runs]\nrounds = 3", "unknown section in .*spec 'runs'; did you mean 'run'"),
    ("spec = 3", "spec must be a table"),
    ("axes = 3", "axes must be a table of axes"),
    ("title = 3", "title must be text"),
    ('exclude = [{attack.name = "ipm"}]\n[axes]\nattack.name = ["alie"]', "unknown value of attack.name in .*'ipm'"),
    ("exclude = [{run.lr = 1}]", "unknown axis in .*exclude 'run.lr'"),
    ("exclude = [{run.lr = 1}]\n[axes]\nrun.lr = [1]", "the exclusions leave no run"),
    ('[tune]\nmethod = "random"', "unknown .*tune.method 'random'"),
    ("[tune]\nlr = [1]", "unknown key in .*tune 'lr'"),
    ("[tune]\neta = 1", "eta must be a whole number, at least 2"),
    ("[tune]\nkeep = 0", "keep must be a whole number, at least 1"),
    ("[axes]\nrun.lr = [1]\n[tune]\nover.run.lr = [1]", "run.lr is compared in axes, so it cannot be tuned"),
    (
        '[axes]\nattack.name = ["alie"]\nlie = {mimic = {attack = "mimic"}}',
        "the axes attack.name and lie both set attack.name",
    ),
    (
        "[axes]\nrun.lr = [1]\nstep = {small = {run.lr = 0.1}, large = {run.lr = 1.0}}",
        "the axes run.lr and step both set run.lr",
    ),
    ("[[tune.extra]]\nover.run.lr = [1]", "tune.extra must have where and over"),
    ('[report]\nrows = "splitt"\n[axes]\nrun.lr = [1]', "unknown axis in .*report.rows 'splitt'"),
    ('[report]\nmetrics = ["acuracy"]', "did you mean 'accuracy'"),
    ('extends = "none.toml"', "cannot read .*none.toml"),
    ('extends = "study.toml"', "goes round in circles"),
    ("[axes", "is not valid TOML"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_bad_studies_are_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as found:
        expand(study(tmp_path, text))
    assert "\n" not in str(found.value)
