"""The commands that read results: pages, tables, pictures, exports, and whether it all comes out again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from demoa.core.errors import ConfigError

app = typer.Typer()
console = Console()

Studies = Annotated[list[Path], typer.Argument(help="Folders of studies, or .jsonl files; several are read as one.")]
Where = Annotated[
    list[str] | None, typer.Option("--where", help="axis=label,label: only runs with one of these labels.")
]


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a study, one with runs inside it, or a .jsonl file.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the folder if not given.")] = None,
) -> None:
    """Write a page about a study, and its figures as PDF and PNG beside it."""
    from demoa.report.page import write_report

    page = write_report(folder, out)
    console.print(f"{page}; figures in {page.parent / 'figures'}", soft_wrap=True, markup=False)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="The folder of a study, or one with runs inside it.")],
    target: Annotated[Path, typer.Argument(help="A file that ends in .parquet, .csv, or .jsonl.")],
    rounds: Annotated[bool, typer.Option("--rounds", help="A row per round in place of a row per run.")] = False,
) -> None:
    """Write results as a table for other programs, or, as .jsonl, a whole study that `demoa report` can read."""
    from demoa import results

    count = results.export(folder, target, "rounds" if rounds else "runs")
    console.print(f"{target}: {count} rows", soft_wrap=True, markup=False)


@app.command()
def table(
    studies: Studies,
    rows: Annotated[str, typer.Option(help="The axis whose labels are the rows, or several: axis,axis.")],
    columns: Annotated[str, typer.Option(help="The axis whose labels are the columns.")],
    metric: Annotated[
        str | None, typer.Option(help="The final figure, test accuracy if not given; or setting: what was tuned.")
    ] = None,
    mean: Annotated[str | None, typer.Option(help="Axes to take the mean over: axis,axis.")] = None,
    worst: Annotated[str | None, typer.Option(help="Axes to take the worst of: axis,axis.")] = None,
    against: Annotated[str | None, typer.Option(help="A column that the others are compared with.")] = None,
    by: Annotated[str | None, typer.Option(help="Compare in each group with the same labels of axis,axis.")] = None,
    where: Where = None,
) -> None:
    """Print final figures as Markdown tables: mean and standard deviation over seeds, and differences."""
    from demoa.cli.table import markdown_differences, markdown_settings, markdown_tables
    from demoa.results.selection import narrowed, read_together
    from demoa.results.tables import usual_metric

    if mean is not None and worst is not None:
        raise ConfigError("give either --mean or --worst")
    if by is not None and against is None:
        raise ConfigError("--by says where columns are compared: give --against as well")
    if metric == "setting" and (mean or worst or against):
        raise ConfigError("settings are words: leave --mean, --worst and --against out, or choose another --metric")
    results = narrowed(read_together(studies), _labels(where))
    if metric == "setting":
        print(markdown_settings(results, _axes(rows), columns))
        return
    metric = metric or usual_metric(results)
    parts = [markdown_tables(results, _axes(rows), columns, metric, _axes(worst or mean), "worst" if worst else "mean")]
    if against is not None:
        parts.append(markdown_differences(results, columns, against, _axes(by), metric))
    print("\n\n".join(parts))


@app.command()
def draw(
    studies: Studies,
    target: Annotated[Path, typer.Option("--out", help="The picture: a .png, .pdf or .svg file.")],
    final: Annotated[str | None, typer.Option(help="Draw where runs end, with this axis below, not curves.")] = None,
    against: Annotated[
        str | None, typer.Option(help="Draw a map of how far from this curve the others end, not curves.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="The axis of the rows of panels; of a map, one or several: axis,axis.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="The axis of the columns of panels.")] = None,
    curves: Annotated[str | None, typer.Option(help="The axis of the curves.")] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="What is drawn, such as accuracy; with --final or --against, a final figure."),
    ] = None,
    stretch: Annotated[
        bool, typer.Option("--stretch", help="Spread accuracies out near 100 %: log odds. Bands may be cut off.")
    ] = False,
    where: Where = None,
) -> None:
    """Draw a study into one picture: curves over rounds; where runs end (--final); or differences (--against)."""
    from demoa.report.differences import draw_differences
    from demoa.report.figures import draw_results
    from demoa.report.finals import draw_finals
    from demoa.results.selection import narrowed, read_together

    if final is not None and against is not None:
        raise ConfigError("give either --final or --against")
    if (final or against) and metric is not None and len(metric) > 1:
        raise ConfigError("--final and --against draw one figure: give --metric once")
    if against and stretch:
        raise ConfigError("--stretch is for accuracies, and --against draws differences: leave one out")
    results = narrowed(read_together(studies), _labels(where))
    given = {"rows": rows, "columns": columns, "curves": curves}
    roles = {role: axis for role, axis in given.items() if axis}
    one = metric[0] if metric else None
    if against is not None:
        roles.pop("rows", None)  # of a map there may be several
        draw_differences(results, against, target, _axes(rows), roles, one)
    elif final is not None:
        draw_finals(results, final, target, roles, one, stretched=stretch)
    else:
        draw_results(results, target, roles, metric or (), stretched=stretch)
    console.print(f"{target}", soft_wrap=True, markup=False)


@app.command()
def verify(
    study: Annotated[Path, typer.Argument(help="The folder of a study, or a .jsonl file.")],
    out: Annotated[Path, typer.Option(help="The folder for the runs, which must be new or empty.")],
    cells: Annotated[int, typer.Option(help="How many cells to play again.")] = 3,
    seed: Annotated[int, typer.Option(help="What the cells are drawn with.")] = 0,
    processes: Annotated[int | None, typer.Option(help="Runs at a time; one per core if not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interrupt, with what is in --out.")] = False,
) -> None:
    """Play some cells of a study again, from nothing, and say whether the same figures come out."""
    from demoa.cli.verify import verify_command

    code = verify_command(study, out, cells, seed=seed, processes=processes, resume=resume, console=console)
    raise typer.Exit(code)


def _axes(text: str | None) -> list[str]:
    return [] if text is None else [axis.strip() for axis in text.split(",")]


def _labels(where: list[str] | None) -> dict[str, list[str]]:
    """Return what stands behind each axis in `axis=label,label`."""
    found: dict[str, list[str]] = {}
    for text in where or ():
        axis, equals, labels = text.partition("=")
        if not equals or not labels:
            raise ConfigError(f"--where must be axis=label or axis=label,label, got {text!r}")
        found.setdefault(axis.strip(), []).append(labels.strip())
    return found
