"""`demoa draw`: a study in one picture."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from PIL import Image

from demoa.cli.main import main
from demoa.core.errors import ConfigError
from demoa.report.differences import MINE, THEIRS, Gap, gaps, map_of
from demoa.report.figures import ROUNDING, draw
from demoa.report.finals import finals_of
from demoa.report.gather import Figure, Hole, Layout, Line, Panel
from demoa.results import read_results
from demoa.results.archive import KeptSource
from demoa.results.run import RunResult
from demoa.results.selection import narrowed
from demoa.results.tables import final_tables
from tests.made_up import ALGORITHMS, altered, made_up


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    holes = [("fedcm", "alie", "IID", 1)]
    return made_up(tmp_path_factory.mktemp("study") / "study", rules=("cclip", "krum"), holes=holes, rounds=20)


def run(*words):
    """What the command line exits with; None if it comes to its end."""
    try:
        main([str(word) for word in words])
    except SystemExit as ended:
        return ended.code


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_curves_and_ends_are_drawn(study, tmp_path, kind):
    curves, ends = tmp_path / f"curves.{kind}", tmp_path / "new" / f"ends.{kind}"
    assert not run("draw", study, "--out", curves, "--where", "aggregation.rule=krum")
    assert not run("draw", study, "--out", ends, "--final", "attack.name", "--columns", "aggregation.rule")
    assert curves.stat().st_size > 1000
    assert ends.stat().st_size > 1000
    if kind == "png":
        with Image.open(curves) as one, Image.open(ends) as other:
            assert one.width > 500
            assert other.width > 500


def test_the_same_results_give_the_same_bytes(study, tmp_path):
    for kind in ("svg", "pdf", "png"):
        for name in ("one", "other"):
            run("draw", study, "--out", tmp_path / f"{name}.{kind}", "--where", "aggregation.rule=krum")
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()


def test_ends_are_drawn_by_any_final_figure(study, tmp_path):
    words = ("--final", "attack.name", "--where", "aggregation.rule=krum")
    for name, metric in (("a", "test_accuracy"), ("b", "lowest_late_accuracy"), ("c", "test_loss")):
        run("draw", study, *words, "--metric", metric, "--out", tmp_path / f"{name}.png")
    assert len({(tmp_path / f"{name}.png").read_bytes() for name in "abc"}) == 3


def test_every_run_has_its_dot_and_every_whole_cell_its_mean(study):
    results = read_results(study)
    layout = Layout("split", "aggregation.rule", "algorithm.name", ("accuracy",))
    canvas = finals_of(results, layout, "attack.name", "test_accuracy")
    panels = canvas.get_axes()
    assert len(panels) == 4
    for number, panel in enumerate(panels):
        dots = [line for line in panel.lines if line.get_marker() == "o"]
        means = [line for line in panel.lines if line.get_linewidth() == 1.8]
        holes = [text for text in panel.texts if text.get_text() == "?"]
        lost = number < 2  # a run of the upper row's first place
        assert (len(dots), len(means), len(holes)) == (24 - lost, 8 - lost, int(lost))
    heights = sorted({round(float(line.get_ydata()[0]), 6) for line in panels[2].lines if line.get_linewidth() == 1.8})
    assert heights == [51, 61, 71, 81]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--out", "a.png"], "these runs differ in too much for one picture: in aggregation.rule; draw fewer"),
        (["--out", "a.png", "--rows", "split", "--columns", "split"], "an axis has two roles among split, split"),
        (["--out", "a.png", "--final", "attack.name", "--metric", "a", "--metric", "b"], "give --metric once"),
        (["--out", "a.png", "--final", "attack.name"], "aggregation.rule has several labels and no place"),
        (["--out", "a.png", "--final", "attack"], "unknown axis 'attack'; did you mean 'attack.name'"),
        (["--out", "a.png", "--final", "split"], "split is both --rows and --final: give one of them another axis"),
        (["--out", "a.png", "--metric", "acc"], "unknown metric 'acc'"),
        (["--out", "a.png", "--against", "demo"], "unknown label of algorithm.name 'demo'; did you mean 'demoa'"),
        (["--out", "a.png", "--against", "demoa"], "aggregation.rule has several labels and no place in the map"),
        (["--out", "a.png", "--against", "demoa", "--rows", "attack.name"], "an axis is named twice"),
        (["--out", "a.png", "--against", "demoa", "--rows", "algorithm.name"], "algorithm.name has two roles"),
        (
            [
                "--out",
                "a.png",
                "--against",
                "demoa",
                "--where",
                "algorithm.name=demoa",
                "--rows",
                "aggregation.rule,split",
            ],
            "there is nothing to compare demoa with",
        ),
        (["--out", "a.png", "--against", "demoa", "--final", "split"], "give either --final or --against"),
        (["--out", "a.png", "--against", "demoa", "--stretch"], "--against draws differences: leave one out"),
        (
            [
                *("--out", "a.png", "--where", "aggregation.rule=krum"),
                *("--final", "attack.name", "--metric", "test_loss", "--stretch"),
            ],
            "test_loss is none",
        ),
        (["--out", "new/a.txt", "--where", "aggregation.rule=krum"], "a picture must end in .png, .pdf, .svg, got"),
        (["--out", "a", "--where", "aggregation.rule=krum"], "a picture must end in .png, .pdf, .svg, got 'a'"),
    ],
)
def test_what_cannot_be_drawn_gets_one_line(study, words, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run("draw", study, *words) == 2
    assert line in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def line_of(values, metric="loss"):
    """A curve of one run with these values."""
    history = {"majority": [], "points": {metric: [[number, value] for number, value in enumerate(values, 1)]}}
    run = RunResult("a", {}, {}, 0, True, "done", None, KeptSource(history))
    return Line("0.5", (run,), {}, ())


def test_losses_that_are_rounding_lie_on_the_foot_of_the_picture():
    panel = Panel("", "0.1", (line_of([1.0, 1e-10, 1e-17, -1e-16]),))
    figure = Figure({}, [""], ["0.1"], ["0.5"], (panel,))
    (axis,) = draw(figure, Layout(None, "sampling.p", "algorithm.alpha", ("loss",))).get_axes()
    assert list(axis.lines[0].get_ydata()) == [1.0, 1e-10, ROUNDING, ROUNDING]
    assert axis.get_ylim()[0] > ROUNDING / 100


def test_a_curve_that_begins_with_nothing_hides_no_other():
    panel = Panel("", "0.1", (line_of([float("nan"), 1.0]), replace(line_of([2.0, 1.0]), label="0.9")))
    figure = Figure({}, [""], ["0.1"], ["0.5", "0.9"], (panel,))
    (axis,) = draw(figure, Layout(None, "sampling.p", "algorithm.alpha", ("loss",))).get_axes()
    assert list(axis.lines[1].get_ydata()) == [2.0, 1.0]
    assert axis.lines[0].get_ydata()[1] == 1.0


def test_panels_of_a_row_show_all_of_each():
    """They share their scale, and the highest curve need not be in the first."""
    panels = tuple(
        Panel("", column, (line_of([1.0, top], "step_age"),)) for column, top in (("0.1", 2.0), ("0.5", 90.0))
    )
    figure = Figure({}, [""], ["0.1", "0.5"], ["0.5"], panels)
    axes = draw(figure, Layout(None, "sampling.p", "algorithm.alpha", ("step_age",))).get_axes()
    assert len({axis.get_ylim() for axis in axes}) == 1
    assert axes[0].get_ylim()[0] == 0
    assert axes[0].get_ylim()[1] > 90


def test_numbers_say_what_they_are_of():
    panels = tuple(Panel(row, "0.1", (line_of([1.0, 0.5]),)) for row in ("3", "4"))
    layout = Layout("clients.n", "sampling.p", "algorithm.alpha", ("loss",))
    canvas = draw(Figure({}, ["3", "4"], ["0.1"], ["0.5"], panels), layout)
    axis, other = canvas.get_axes()
    assert axis.get_title() == "p = 0.1"
    assert axis.get_ylabel().startswith("clients.n = 3")
    assert other.get_ylabel().startswith("clients.n = 4")
    assert canvas.legends[0].get_texts()[0].get_text() == "alpha = 0.5"
    (alone,) = draw(Figure({}, ["3"], ["0.1"], ["0.5"], panels[:1]), layout).get_axes()
    assert alone.get_ylabel() == "test loss"  # the only row is not told from others


def test_a_log_scale_of_few_decades_is_written_out():
    def ticks(values):
        panel = Panel("", "", (line_of(values),))
        canvas = draw(Figure({}, [""], [""], ["0.5"], (panel,)), Layout(None, None, "algorithm.alpha", ("loss",)))
        canvas.draw_without_rendering()
        return [text.get_text() for text in canvas.get_axes()[0].get_yticklabels()]

    assert {"0.2", "0.5", "1"} <= set(ticks([1.2, 0.15]))
    assert any("10^" in text for text in ticks([1.2, 1e-9]))


def test_accuracies_near_one_are_spread_out_and_none_is_cut_off():
    panel = Panel("", "0.1", (line_of([0.12, 0.9, 0.95, 0.975], "accuracy"),))
    other = Panel("", "0.5", (line_of([0.3, 0.5, 0.98, 0.985], "accuracy"),))
    figure = Figure({}, [""], ["0.1", "0.5"], ["0.5"], (panel, other))
    layout = Layout(None, "sampling.p", "algorithm.alpha", ("accuracy",))
    canvas = draw(figure, layout, stretched=True)
    canvas.draw_without_rendering()
    axis = canvas.get_axes()[0]
    assert axis.get_ylim() == (10, 99)
    ticks = [text.get_text() for text in axis.get_yticklabels()]
    assert ticks == ["10", "20", "50", "80", "90", "95", "98", "99"]
    heights = axis.transData.transform([(0, percent) for percent in (50, 63, 95, 97)])[:, 1]
    assert heights[3] - heights[2] == pytest.approx(heights[1] - heights[0], rel=0.02)
    losses = replace(layout, metrics=("loss",))
    with pytest.raises(ConfigError, match="--stretch spreads accuracies out near 100 %, and loss is none"):
        draw(figure, losses, stretched=True)


def test_the_stretch_of_a_cell_with_a_hole_is_that_of_its_other_seeds():
    whole = line_of([0.955, 0.975], "accuracy")
    holed = replace(line_of([0.12, 0.4], "accuracy"), label="0.9", holes=(Hole(1, "failed", "it fell"),))
    figure = Figure({}, [""], [""], ["0.5", "0.9"], (Panel("", "", (whole, holed)),))
    canvas = draw(figure, Layout(None, None, "algorithm.alpha", ("accuracy",)), stretched=True)
    assert canvas.get_axes()[0].get_ylim() == (10, 98)


def test_ends_below_zero_are_seen(tmp_path):
    """Accuracies rise all the time, at majority rounds too."""
    rises = read_results(made_up(tmp_path / "study", rounds=100))
    layout = Layout("split", None, "algorithm.name", ("accuracy",))
    for axis in finals_of(rises, layout, "attack.name", "majority_fall").get_axes():
        low, high = axis.get_ylim()
        ends = [float(line.get_ydata()[0]) for line in axis.lines if line.get_marker() == "o"]
        assert low < min(ends) < 0
        assert max(ends) < high


def test_a_short_stretch_has_ticks_enough():
    panel = Panel("", "", (line_of([0.955, 0.975], "accuracy"),))
    layout = Layout(None, None, "algorithm.alpha", ("accuracy",))
    canvas = draw(Figure({}, [""], [""], ["0.5"], (panel,)), layout, stretched=True)
    assert {95, 96, 97, 98} <= set(canvas.get_axes()[0].get_yticks())


@pytest.mark.parametrize(("values", "limits"), [([1.0, 1.0], (99.8, 99.9)), ([0.0, 0.0], (1, 2))])
def test_accuracies_at_the_very_end_of_the_scale_lie_on_its_edge(values, limits):
    panel = Panel("", "", (line_of(values, "accuracy"),))
    layout = Layout(None, None, "algorithm.alpha", ("accuracy",))
    assert draw(Figure({}, [""], [""], ["0.5"], (panel,)), layout, stretched=True).get_axes()[0].get_ylim() == limits


def test_the_caption_of_a_small_map_is_not_cut_off(tmp_path):
    study = made_up(tmp_path / "study", attacks=("alie",), rounds=10)
    read = narrowed(read_results(study), {"algorithm.name": ["demoa", "fedavg"]})
    rows = ["split", "aggregation.rule"]
    canvas = map_of(read, "algorithm.name", "demoa", rows, "attack.name", "test_accuracy")
    canvas.draw_without_rendering()
    caption = canvas.get_axes()[-1].xaxis.get_label()
    assert caption.get_text().endswith("3 seeds")
    box = caption.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= canvas.bbox.x1


def test_ends_are_spread_out(study):
    layout = Layout("split", "aggregation.rule", "algorithm.name", ("accuracy",))
    canvas = finals_of(read_results(study), layout, "attack.name", "test_accuracy", stretched=True)
    assert {axis.get_ylim() for axis in canvas.get_axes()} == {(20, 90)}  # the ticks around 50 and 81


def test_a_map_of_differences_pairs_seeds(study):
    """The k-th algorithm ends at 0.5 + k / 10, and one run of the third is missing."""
    tables = {
        table.labels["algorithm.name"]: table
        for table in final_tables(read_results(study), ["aggregation.rule", "split"], "attack.name", "test_accuracy")
    }
    found = gaps(tables["fedcm"], tables["demoa"], 3)
    assert found[("cclip", "IID"), "alie"].values == pytest.approx([0.2] * 2)
    assert found[("cclip", "non-IID"), "alie"].values == pytest.approx([0.2] * 3)
    assert len(found) == 8


def test_a_field_says_what_is_missing_and_how_far_seeds_are_apart():
    assert Gap((), 3).said(100) == "?"
    assert Gap((0.1, 0.2), 3).said(100) == "+15.0 (2/3)"
    assert Gap((-0.1, -0.2, -0.3), 3).said(1) == "-0.2"
    assert Gap((0.1, 0.2, 0.3), 3).spread == pytest.approx(0.1)
    assert Gap((0.1,), 1).spread is None


@pytest.mark.parametrize(("metric", "colour"), [("test_accuracy", THEIRS), ("test_loss", MINE)])
def test_colours_of_a_map_say_what_is_better_and_its_bar_has_the_sign_of_its_numbers(tmp_path, metric, colour):
    """The others have more than DeMoA, of accuracy or of loss: the last one the most."""
    study = made_up(tmp_path / "study", rounds=10)
    read = altered(study, lambda run: {metric: ALGORITHMS.index(run.cell["algorithm.name"]) / 10})
    canvas = map_of(read, "algorithm.name", "demoa", ["split"], "attack.name", metric)
    last = canvas.get_axes()[2]
    (image,) = last.get_images()
    assert last.get_title() == "Byz-VR-MARINA-PP"
    assert to_hex(image.cmap(image.norm(image.get_array()[0, 0]))) == colour.lower()
    assert float(last.texts[0].get_text()) == pytest.approx(image.get_array()[0, 0])
    assert image.get_array()[0, 0] > 0


def test_a_field_has_mean_and_spread_over_seeds(tmp_path):
    read = altered(
        made_up(tmp_path / "study", rounds=10),
        lambda run: {"test_accuracy": 0.01 * run.seed * (run.cell["algorithm.name"] == "fedcm")},
    )
    panel = map_of(read, "algorithm.name", "demoa", ["split"], "attack.name", "test_accuracy").get_axes()[1]
    assert panel.get_title() == "FedCM"
    assert [text.get_text() for text in panel.texts][:2] == ["+1.0", "± 1.0"]


def test_a_map_of_differences_is_drawn(study, tmp_path):
    target = tmp_path / "map.png"
    assert not run("draw", study, "--against", "demoa", "--rows", "aggregation.rule,split", "--out", target)
    with Image.open(target) as picture:
        assert picture.width > 900  # a panel for each of the three others
