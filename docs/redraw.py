"""Make all tables and pictures of the documentation again, each by the command that stands beside it.

    python docs/redraw.py           all pages
    python docs/redraw.py PAGE...   some

In a page, an indented line `demoa table ...` or `demoa majority ...` is followed by what it prints, up to a line
`<!-- end -->`, and an indented line `demoa draw ... --out PICTURE` draws a picture that the page shows. They take what
they need from files beside the pages, so nothing is trained. Commands are as one would type them in the folder above
this one.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from pathlib import Path

import click

from demoa.cli.main import app
from demoa.core.errors import ConfigError, DemoaError

ROOT = Path(__file__).parents[1]
COMMAND = r"^    demoa {} [^\n]*?(?:\\\n[^\n]*?)*$"
PRINTS = "(?:table|majority)"
TABLE = re.compile(rf"({COMMAND.format(PRINTS)})\n\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(COMMAND.format("draw"), re.MULTILINE)


def redraw(page: Path) -> int:
    """Make the tables and pictures of a page again, and return how many there are."""
    text = page.read_text()
    tables = re.findall(COMMAND.format(PRINTS), text, re.MULTILINE)
    made, count = TABLE.subn(lambda found: f"{found[1]}\n\n{_printed(found[1])}\n<!-- end -->", text)
    if count != len(tables):
        raise ConfigError("a table has no line <!-- end --> after it")
    pictures = PICTURE.findall(text)
    for command in pictures:
        target = _target(command)
        _printed(command)
        if f"]({os.path.relpath(ROOT / target, page.resolve().parent)})" not in text:
            raise ConfigError(f"it does not show {target}, which it draws")
    if made != text:
        page.write_text(made)
    return count + len(pictures)


def _words(command: str) -> list[str]:
    return shlex.split(command.replace("\\\n", " "))[1:]


def _target(command: str) -> str:
    words = _words(command)
    if "--out" not in words[:-1]:
        raise ConfigError(f"a picture has no --out PICTURE: {command.strip()}")
    return words[words.index("--out") + 1]


def _printed(command: str) -> str:
    """Return what a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        app(args=_words(command), standalone_mode=False)
    return out.getvalue()


def main(pages: list[str]) -> None:
    """Redraw some pages, or all."""
    chosen = [Path(page).resolve() for page in pages] or sorted((ROOT / "docs").rglob("*.md"))
    with contextlib.chdir(ROOT):
        for page in chosen:
            try:
                count = redraw(page)
            except (DemoaError, OSError, click.ClickException) as error:
                said = error.format_message() if isinstance(error, click.ClickException) else str(error)
                raise SystemExit(f"{page.name}: {said}") from None
            if count:
                print(f"{page.relative_to(ROOT)}: {count} made")


if __name__ == "__main__":
    main(sys.argv[1:])
