"""`demoa draw`: a study in one picture."""

import pytest
from PIL import Image

from demoa.cli.main import main
from demoa.report.finals import finals_of
from demoa.report.gather import Layout
from demoa.results import read_results
from tests.made_up import made_up


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
        (["--out", "a.png", "--final", "split"], "an axis has two roles among split"),
        (["--out", "a.png", "--metric", "acc"], "unknown metric 'acc'"),
        (["--out", "new/a.txt", "--where", "aggregation.rule=krum"], "a picture must end in .png, .pdf, .svg, got"),
        (["--out", "a", "--where", "aggregation.rule=krum"], "a picture must end in .png, .pdf, .svg, got 'a'"),
    ],
)
def test_what_cannot_be_drawn_gets_one_line(study, words, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert run("draw", study, *words) == 2
    assert line in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
