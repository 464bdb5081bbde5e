"""`dpcate bench`: comparisons that take longer than a test may."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpcate.cli_parts import Quiet, make_folder, progress_bar
from dpcate.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Benchmarks; some need the extra 'peers' or 'opacus'.")
console = Console()

Workers = Annotated[int, typer.Option(min=1, help="Runs at the same time, each on one thread.")]


@app.command()
def speed(
    dataset: Annotated[int, typer.Option(help="Dataset 1 or 2 of the paper.")] = 1,
    rows: Annotated[int, typer.Option(help="Its rows.")] = 3000,
    quiet: Quiet = False,
) -> None:
    """One private fit, plain least squares on its features, and EconML's CausalForestDML, in the same run."""
    from dpcate.bench.speed import compare_fit_times

    with progress_bar(quiet) as report:
        report("fits in turn", 0.0)
        timings = compare_fit_times(dataset, rows)
    _print_timings(timings)


@app.command()
def dpsgd(quiet: Quiet = False) -> None:
    """Our DP-SGD against opacus: 1,350 rows, 30 columns, 50 epochs, without compilation."""
    from dpcate.bench.dpsgd import compare_with_opacus

    with progress_bar(quiet) as report:
        report("trainings in turn", 0.0)
        timings = compare_with_opacus()
    _print_timings(timings)


@app.command()
def path(
    questions: Annotated[int, typer.Option(help="Questions, one at a time.")] = 10_000, quiet: Quiet = False
) -> None:
    """One noise path asked one point at a time: time per thousand, and memory."""
    from dpcate.bench.path import time_questions

    with progress_bar(quiet) as report:
        report("questions", 0.0)
        timing = time_questions(questions)
    table = Table("questions", "seconds")
    for block, seconds in enumerate(timing.seconds_per_block, start=1):
        table.add_row(f"thousand {block}", f"{seconds:.2f}")
    table.add_row("last hundred", f"{timing.last_hundred:.2f}")
    table.add_row("last hundred, predicted by i² from the first thousand", f"{timing.predicted_last_hundred:.2f}")
    console.print(table)
    console.print(f"peak memory grew by {timing.growth_bytes / 2**20:.0f} MiB")


@app.command()
def tuning(repetitions: Annotated[int, typer.Option(help="Random problems per cell and width.")] = 20) -> None:
    """The default rule of the features release against its neighbours, on the data that chose it."""
    from dpcate.bench.tuning import compare_settings

    print("rows,epsilon,setting,factor,relative_error")
    for line in compare_settings(repetitions):
        print(f"{line.rows},{line.epsilon:g},{line.setting},{line.factor:g},{line.relative_error:.3f}", flush=True)


@app.command()
def moments(
    seeds: Annotated[int, typer.Option(min=1, help="Random trials per cell.")] = 16,
    first_seed: Annotated[int, typer.Option(min=0, help="Rules were chosen on seeds 0 to 95.")] = 0,
    clinic: Annotated[bool, typer.Option("--clinic", help="Trials on columns like those of a clinic.")] = False,
    held_out: Annotated[bool, typer.Option("--held-out", help="Trials that no rule was chosen on.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Also draw the figure of docs/moments.md here.")] = None,
) -> None:
    """The default on the random trials that its rules were chosen on, or on held-out ones."""
    from dpcate.bench.moments import compare_cells, draw_curves

    if clinic and held_out:
        raise InputError("--clinic and --held-out are different trials: ask for one")
    trials = "clinic" if clinic else "held-out" if held_out else "tuning"

    if figure is not None:
        draw_curves(figure, seed=7100)
    print("rows,columns,epsilon,typical_error,quadratic_error,coverage,width_over_error")
    for cell in compare_cells(range(first_seed, first_seed + seeds), trials):
        numbers = (cell.typical, cell.quadratic, cell.coverage, cell.width)
        print(
            cell.rows, cell.columns, f"{cell.epsilon:g}", *(f"{number:.3f}" for number in numbers), sep=",", flush=True
        )


@app.command()
def published(
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions per cell.")] = 100,
    first_seed: Annotated[int, typer.Option(min=0, help="docs/protocol.md lists the seeds that were looked at.")] = 0,
    only: Annotated[list[str] | None, typer.Option(metavar="DATA", help="These data only; can be repeated.")] = None,
    quiet: Quiet = False,
) -> None:
    """The default's errors, coverage and widths on published data and on effects with jumps. Needs 'peers'."""
    from dpcate.bench.published import EPSILONS, SOURCES, measure

    _require_known("data", only, SOURCES)
    with progress_bar(quiet) as report:
        cells = list(measure(range(first_seed, first_seed + seeds), only or SOURCES, EPSILONS, report))
    print("data,epsilon,error,best_constant,coverage,width_over_error")
    for cell in cells:
        numbers = (cell.error, cell.constant, cell.coverage, cell.width)
        print(f'"{cell.data}"', f"{cell.epsilon:g}", *(f"{number:.3f}" for number in numbers), sep=",")


@app.command()
def parts(
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions per cell.")] = 20,
    first_seed: Annotated[int, typer.Option(min=0, help="docs/protocol.md lists the seeds that were looked at.")] = 0,
    only: Annotated[list[str] | None, typer.Option(metavar="DATA", help="These data only; can be repeated.")] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Take away these parts only; can be repeated.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """By how much the default's errors grow without each of its parts. ACIC16 needs the extra 'peers'."""
    from dpcate.bench.parts import DATA, EPSILONS, PARTS, measure

    _require_known("data", only, DATA)
    _require_known("part", without, PARTS)
    with progress_bar(quiet) as report:
        changes = list(measure(range(first_seed, first_seed + seeds), without or PARTS, only or DATA, EPSILONS, report))
    print("part,data,change_percent,standard_error")
    for change in changes:
        print(f'"{change.part}","{change.data}"', *(f"{number:.1f}" for number in change.percent), sep=",")


@app.command()
def average(
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions, of data and noise.")] = 200,
    first_seed: Annotated[int, typer.Option(min=0, help="docs/protocol.md lists the seeds that were looked at.")] = 0,
    quiet: Quiet = False,
) -> None:
    """How often the 95% interval of the average effect covers on Dataset 1, and its width next to a non-private one."""
    from dpcate.bench.average import EPSILONS, cover

    with progress_bar(quiet) as report:
        lines = list(cover(range(first_seed, first_seed + seeds), EPSILONS, report))
    print("epsilon,coverage,width,oracle_width")
    for line in lines:
        print(f"{line.epsilon:g},{line.coverage:.3f},{line.width:.3f},{line.oracle_width:.3f}")


@app.command()
def extremes(
    configurations: Annotated[int, typer.Option(min=1, help="How many are drawn.")] = 500,
    first_seed: Annotated[int, typer.Option(min=0, help="Of the first configuration.")] = 0,
    rows: Annotated[int, typer.Option(min=51, help="The most rows.")] = 50_000,
    columns: Annotated[int, typer.Option(min=1, help="The most columns.")] = 200,
    quiet: Quiet = False,
) -> None:
    """Random hostile configurations: which of them give effects that are not finite or beyond the outcome's range."""
    from dpcate.bench.extremes import unsound

    with progress_bar(quiet) as report:
        found = list(unsound(range(first_seed, first_seed + configurations), rows, columns, report))
    print(f"{configurations - len(found)} of {configurations} are sound")
    for configuration in found:
        print(configuration)
    if found:
        raise typer.Exit(1)


@app.command()
def plan(
    second_stage: Annotated[str | None, typer.Option(help="One second stage; all of them if not given.")] = None,
) -> None:
    """The planner's noise and widths against repeated fits on people that it did not make up: an hour or two."""
    from dpcate.bench.planner import GRID, cells, compare

    if second_stage is not None and second_stage not in GRID:
        raise InputError(f"--second-stage must be one of {', '.join(GRID)}")
    print("second_stage,rows,columns,epsilon,noise,simulated_noise,ratio,simulation_error,width,simulated_width")
    for line in compare(cells(GRID if second_stage is None else [second_stage])):
        cell = line.cell
        numbers = (line.noise, line.simulated_noise, line.ratio, line.error, line.width, line.simulated_width)
        print(
            cell.second_stage, cell.rows, cell.columns, f"{cell.epsilon:g}", *(f"{number:.4f}" for number in numbers),
            sep=",", flush=True,
        )  # fmt: skip


@app.command()
def paper(
    out: Annotated[Path, typer.Option(help="Folder for figures and the page; kept runs are not run again.")],
    mimic: Annotated[Path | None, typer.Option(help="MIMIC-Extract's all_hourly_data.h5; else a stand-in.")] = None,
    tcga: Annotated[Path | None, typer.Option(help="Expression (.npz, .csv, .parquet); else a stand-in.")] = None,
    genes: Annotated[Path | None, typer.Option(help="Public list of genes for --tcga, one name per line.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows, budgets and runs: a minute or two.")] = False,
    workers: Workers = 2,
    quiet: Quiet = False,
) -> None:
    """Every experiment of the paper, twice: with its calibration, which is not private, and with ours."""
    from dpcate.bench.paper.results import redraw
    from dpcate.bench.paper.sources import UserFiles

    files = UserFiles(mimic=mimic, tcga=tcga, genes=genes)
    make_folder(out)
    with progress_bar(quiet) as report:
        redraw(out, quick=quick, files=files, workers=workers, progress=report)
    if not quiet:
        console.print(f"Open [bold]{out / 'paper.html'}[/bold].")


@app.command()
def peers(
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and the page; kept runs are not run again.")],
    quick: Annotated[bool, typer.Option("--quick", help="Two datasets, two budgets, two seeds: minutes.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD", help="Run this method only; can be repeated. Tables show all that is kept."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Run the first of the plan's ten seeds only.")] = None,
    minutes: Annotated[
        float, typer.Option(min=0, help="Begin no run after this time; 0 draws the tables of what is kept.")
    ] = math.inf,
    workers: Workers = 2,
    quiet: Quiet = False,
) -> None:
    """Every method next to every peer: errors, coverage, seconds, memory, guarantee. Needs the extra 'peers'."""
    from dpcate.bench.peers.results import Part, compare

    part = Part(only=tuple(only or ()), seeds=seeds, seconds=60 * minutes)
    make_folder(out)
    with progress_bar(quiet) as report:
        compare(out, quick=quick, workers=workers, progress=report, part=part)
    if not quiet:
        console.print(f"Open [bold]{out / 'peers.html'}[/bold]; the tables are also in peers.md and peers.csv.")


def _require_known(kind: str, asked: Iterable[str] | None, known: Iterable[str]) -> None:
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise InputError(f"no {kind} '{unknown[0]}'; there are {', '.join(map(repr, known))}")


def _print_timings(timings) -> None:
    table = Table("method", "seconds", "times the first")
    for line in timings:
        table.add_row(line.method, f"{line.seconds:.4f}", f"{line.ratio:.3g}")
    console.print(table)
