"""The command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import click
import typer
from rich.console import Console

from demoa import __version__
from demoa.cli import reading
from demoa.cli.compare import compare_runs, run_folders
from demoa.cli.listing import list_families
from demoa.core.errors import ConfigError, DemoaError, first_line

app = typer.Typer(
    name="demoa",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"demoa {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """Federated training that stays right although most clients are absent and some of them lie."""


data_app = typer.Typer(help="Data sets: what is there, and fetching.", no_args_is_help=True)
app.add_typer(reading.app)
app.add_typer(data_app, name="data")
console = Console()

Settings = Annotated[list[str] | None, typer.Option("--set", help="section.key=value, such as sampling.p=0.1")]


@app.command()
def run(
    spec: Annotated[Path | None, typer.Argument(help="A TOML file; without one, the default run.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for the results; it must not hold a run.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run, or the runs, in this folder.")] = None,
    set_: Settings = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="section.key=a,b,...: one run for each, side by side; several vary together."),
    ] = None,
    track: Annotated[list[str] | None, typer.Option(help="Show it in tensorboard, mlflow or wandb, too.")] = None,
    device: Annotated[str | None, typer.Option(help="Where to compute, such as cuda; the same as run.device.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads to use; the same as run.threads.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Leave out the closing table.")] = False,
) -> None:
    """Train a federation under attack."""
    from demoa.cli.train import new_jobs, play_jobs, resumed_jobs

    if (out is None) == (resume is None):
        raise ConfigError("give either --out FOLDER for a new run or --resume FOLDER to go on with one")
    if resume is not None:
        if spec is not None or set_ or vary or device or threads is not None:
            raise ConfigError(
                "--resume takes its spec from the folder; leave SPEC, --set, --vary, --device and --threads out"
            )
        jobs = resumed_jobs(resume)
    else:
        assert out is not None
        settings = [*(set_ or ()), *([f'run.device="{device}"'] if device else ())]
        settings += [] if threads is None else [f"run.threads={threads}"]
        jobs = new_jobs(spec, settings, vary or (), out)
    try:
        play_jobs(jobs, track or (), console)
    except KeyboardInterrupt:
        print(f"demoa: stopped; go on with: demoa run --resume {out or resume}", file=sys.stderr)
        raise typer.Exit(130) from None
    if not quiet:
        compare_runs([job.folder.path for job in jobs], console)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(help="A TOML file with a study, such as those in studies/.")],
    out: Annotated[Path, typer.Option(help="The folder for the results; the same command goes on with what is there.")],
    set_: Settings = None,
    budget: Annotated[str | None, typer.Option(help="Scale it to a share of the work, 10%, or to a time, 2h.")] = None,
    processes: Annotated[int | None, typer.Option(help="Runs at a time; one per core if not given.")] = None,
    engine: Annotated[str, typer.Option(help="Where to play them: local, or ray.")] = "local",
    retry: Annotated[bool, typer.Option("--retry", help="Try runs again that failed.")] = False,
    known: Annotated[
        list[Path] | None, typer.Option(help="A .jsonl file of demoa export, whose runs are not played; or several.")
    ] = None,
    keep_states: Annotated[bool, typer.Option("--keep-states", help="Keep the server of runs that are over.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be played.")] = False,
) -> None:
    """Play a whole study: a grid of runs, tuned, one process per core."""
    from demoa.cli.sweep import sweep_command

    sys.path.append(str(spec.resolve().parent))  # parts of one's own are found beside the study, too
    code = sweep_command(
        spec,
        out,
        settings=set_ or [],
        budget=budget,
        processes=processes,
        engine=engine,
        retry=retry,
        known=known or [],
        keep_states=keep_states,
        plan=plan,
        console=console,
    )
    raise typer.Exit(code)


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs, or of folders of runs.")],
    picture: Annotated[Path | None, typer.Option(help="Draw the accuracy curves into this PNG or PDF file.")] = None,
) -> None:
    """Show runs side by side."""
    runs = run_folders(folders)
    compare_runs(runs, console)
    if picture is not None:
        from demoa.report.figures import draw_runs

        draw_runs(runs, picture)
        console.print(f"Picture: {picture}")


@app.command("list")
def list_() -> None:
    """List rules, mixings, stores, attacks, algorithms, partitions, samplings, models and data sets."""
    list_families(console)


@app.command()
def memory(
    n: Annotated[int, typer.Option(help="Clients.")],
    d: Annotated[int, typer.Option(help="Parameters of the model.")],
    store: Annotated[str | None, typer.Option(help="One kind of store; all of them if not given.")] = None,
) -> None:
    """Say what the rows of a server take, in memory and on disk, for each kind of store."""
    from demoa.cli.memory import print_footprints

    print_footprints(n, d, store, console)


@app.command()
def majority(
    n: Annotated[int, typer.Option(help="Clients.")] = 25,
    f: Annotated[int, typer.Option(help="Byzantine clients among them.")] = 5,
    p: Annotated[float, typer.Option(help="The probability that a client takes part.")] = 0.1,
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")] = 300,
    seeds: Annotated[int, typer.Option(help="Say which rounds it is in runs with seeds from 0 on: so many.")] = 0,
) -> None:
    """Compute how likely it is that most of the clients that take part are Byzantine."""
    from demoa.core.checks import require
    from demoa.metrics import majority_probability, majority_probability_in_run

    require(seeds >= 0, "--seeds", seeds, "at least 0")
    single = majority_probability(n, f, p)
    over_run = majority_probability_in_run(n, f, p, rounds)
    # Plain: pages hold this text, whatever the terminal of whoever makes them is like.
    print(f"In a round: {single:.6%}. In {rounds} rounds, at least once: {over_run:.4%};")
    print(f"expected number of such rounds: {single * rounds:.2f}.")
    if seeds > 0:
        from demoa.sampling import Bernoulli
        from demoa.simulation.federation import majority_rounds

        found = {seed: majority_rounds(Bernoulli(p=p), n, f, seed, rounds) for seed in range(seeds)}
        said = [f"seed {seed} in {', '.join(map(str, these))}" for seed, these in found.items() if these]
        print(f"Of {seeds} seeds, {len(said)} draw one: {'; '.join(said) or 'none'}.")
        if any(1 in these for these in found.values()):
            print("DeMoA, MARINA-PP, hold and MIFA ask everyone in round 1: it counts for FedAvg and FedCM alone.")


@data_app.command("list")
def data_list() -> None:
    """Say which data sets are here."""
    from demoa.data import DATASETS, cache
    from demoa.data.fetch import SOURCES

    for name in sorted(DATASETS):
        here = cache.path_of(name).is_file()
        place = str(cache.path_of(name)) if here else f"not here: demoa data fetch {name}"
        console.print(f"{name:<15} {place if name in SOURCES else 'comes with the package'}", soft_wrap=True)


@data_app.command("fetch")
def data_fetch(name: Annotated[str, typer.Argument(help="mnist or cifar10.")]) -> None:
    """Fetch a data set into the cache folder, once."""
    from demoa.data.fetch import fetch

    fetch(name, console.print)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, with the arguments of the process if none are given; what goes wrong is one line.

    What a spec names as package.module:name is found in the present folder, too, as it is with `python -m`.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        sys.exit(app(args=arguments, standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        said = " ".join(error.format_message().split())  # it may be broken into lines
        print(f"demoa: {said.rstrip('.')}; see demoa --help", file=sys.stderr)
        sys.exit(2)
    except DemoaError as error:
        print(f"demoa: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"demoa: {error.filename or 'a file'}: {error.strerror or first_line(error)}", file=sys.stderr)
        sys.exit(2)
