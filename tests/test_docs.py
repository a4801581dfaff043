"""Tables and pictures in the documentation are those that the commands beside them make."""

import contextlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from demoa.experiment.build import resolve
from demoa.experiment.load import spec_from
from demoa.experiment.spec import run_id
from demoa.results import read_results

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """A copy of the documentation, made again."""
    copy = tmp_path_factory.mktemp("docs") / "docs"
    shutil.copytree(ROOT / "docs", copy)
    for picture in copy.rglob("*.png"):
        picture.unlink()
    subprocess.run([sys.executable, copy / "redraw.py"], check=True, timeout=300)
    return copy


def pages():
    return sorted(page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", pages())
def test_pages_say_what_their_commands_print(redrawn, page):
    assert (redrawn / page).read_text() == (ROOT / "docs" / page).read_text(), "run scripts/redraw"


def test_pictures_are_those_that_commands_draw(redrawn):
    kept = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.png")}
    assert kept == {path.relative_to(redrawn) for path in redrawn.rglob("*.png")}
    for picture in kept:
        with contextlib.ExitStack() as opened:
            one, other = (
                np.asarray(opened.enter_context(Image.open(folder / picture)).convert("L"), float)
                for folder in (ROOT / "docs", redrawn)
            )
        assert one.shape == other.shape, f"{picture}: run scripts/redraw"
        assert np.abs(one - other).mean() < 0.5, f"{picture}: run scripts/redraw"  # letters may be drawn otherwise


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "results").glob("*.jsonl")), ids=lambda file: file.stem)
def test_runs_of_the_documentation_are_those_that_this_code_would_play(file):
    """A run whose part has got another option or default since is another run."""
    others = {
        run.spec["attack"]["name"]
        for run in read_results(file).runs
        if run.spec and run_id(resolve(spec_from(run.spec))) != run.id
    }
    assert not others, f"play them again: scripts/reproduce {file.stem}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("    demoa table docs/results/stores.jsonl --rows store --columns attack.name\n", "has no line <!-- end -->"),
        ("    demoa draw docs/results/stores.jsonl --out docs/a.png\n", "does not show docs/a.png, which it draws"),
        ("    demoa draw docs/results/stores.jsonl\n", "a picture has no --out PICTURE"),
        ("    demoa table docs/results/stores.jsonl --rows a --columns store\n\n<!-- end -->\n", "unknown axis 'a'"),
        ("    demoa table docs/results/stores.jsonl --rows store\n\n<!-- end -->\n", "Missing option '--columns'"),
        ("    demoa table docs/none.jsonl --rows a --columns b\n\n<!-- end -->\n", "docs/none.jsonl is not there"),
    ],
)
def test_a_page_that_cannot_be_made_is_named(tmp_path, text, line):
    docs = tmp_path / "docs"
    (docs / "results").mkdir(parents=True)
    for name in ("redraw.py", "results/stores.jsonl"):
        shutil.copy(ROOT / "docs" / name, docs / name)
    (docs / "page.md").write_text(text)
    found = subprocess.run([sys.executable, docs / "redraw.py"], capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert line in found.stderr
    assert found.stderr.startswith("page.md: ")
    assert found.stderr.count("\n") == 1


def test_pages_link_to_what_is_there():
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        for target, section in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            aim = page.parent / target if target else page
            assert aim.exists(), f"{page.name} links to {target}"
            assert not section or section in sections(aim), f"{page.name} links to {target}#{section}"


def sections(page):
    """The names by which the headings of a page are linked to."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
