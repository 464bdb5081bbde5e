"""The command line: parse, call, answer. Errors are one line on standard error and carry nothing from a row."""

import csv
import io
import sys
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dpcate import cli_bench, cli_ledger, cli_schema
from dpcate._version import __version__
from dpcate.cli_parts import Quiet, make_folder, progress_bar
from dpcate.errors import DpcateError, InputError
from dpcate.files import read_bytes, require_writable, write_atomically

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False)
app.add_typer(cli_bench.app, name="bench")
app.add_typer(cli_ledger.app, name="ledger")
app.add_typer(cli_schema.app, name="schema")
console = Console()


def main() -> None:
    """Entry point: exit 0 when done, 2 on bad input or usage, 3 when the budget refuses, 1 on a defect of ours."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except DpcateError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        if hasattr(error, "format_message"):
            _fail(error.format_message(), 2)
        _fail(f"internal error ({_where(error)}); its text is withheld because it could hold data", 1)


@app.callback(invoke_without_command=True)
def top(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    """Publish who benefits from a treatment, and by how much, without exposing a single patient."""
    if version:
        print(f"dpcate {__version__}")
        raise typer.Exit


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo"),
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    rows: Annotated[int, typer.Option(min=20, max=10_000_000, help="Rows to simulate.")] = 30_000,
    quiet: Quiet = False,
) -> None:
    """The main job on the paper's Dataset 1: release.json, effects.csv, effect.png and report.html."""
    from dpcate import PrivateCATE, datasets
    from dpcate.datasets.synthetic import true_effect
    from dpcate.plots import effect_figure, picture, profile
    from dpcate.report import report_html

    make_folder(out)
    data = datasets.synthetic(1, rows, seed=0)
    with progress_bar(quiet) as report:
        estimator = PrivateCATE(data.schema, epsilon=epsilon, delta=1e-6)
        release = estimator.fit(data.Y, data.T, X=data.X, progress=report).release_
    columns = profile(data.schema, "x0")
    truth = true_effect(1, np.column_stack(list(columns.values())))
    release.save(out / "release.json")
    write_atomically(out / "effects.csv", _effects_csv(release, columns, {**columns}, alpha=0.1))
    write_atomically(out / "effect.png", picture(effect_figure(release, "x0", truth)))
    write_atomically(out / "report.html", report_html(release).encode())
    if not quiet:
        _print_summary(release)
        error = np.sqrt(np.mean((release.effect(data.X) - data.tau) ** 2))
        console.print(
            f"Error of the private effect (PEHE): [bold]{error:.2f}[/bold]; a constant effect has "
            f"{data.tau.std():.2f}. Both are known because this data is simulated."
        )
        console.print(f"Open [bold]{out / 'report.html'}[/bold], or look at {out / 'effect.png'}.")


@app.command()
def fit(
    schema: Annotated[Path, typer.Option(help="Schema file (TOML) with the public facts.")],
    data: Annotated[Path, typer.Option(help="Table with the rows (.csv, .csv.gz or .parquet).")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget ε, above 0.")],
    delta: Annotated[float, typer.Option(help="Privacy budget δ, well below 1/n.")],
    out: Annotated[Path, typer.Option(help="Where the release goes.")] = Path("release.json"),
    learner: Annotated[str, typer.Option(help="r or dr.")] = "r",
    second_stage: Annotated[str, typer.Option(help="moments, features, kernel or network.")] = "moments",
    nuisance: Annotated[str, typer.Option(help="moments, features or network.")] = "moments",
    known_propensity: Annotated[
        float | None, typer.Option(help="Treatment probability of a randomised trial; costs no budget.")
    ] = None,
    split: Annotated[str, typer.Option(help="none, crossfit or disjoint.")] = "none",
    neighbours: Annotated[str, typer.Option(help="replace-one or add-or-remove-one.")] = "replace-one",
    propensity_floor: Annotated[float, typer.Option(help="Propensities are kept this far from 0 and 1.")] = 0.05,
    queries: Annotated[
        Path | None, typer.Option(help="Table of public points: effects are released at these only.")
    ] = None,
    diagnostic: Annotated[
        list[str] | None,
        typer.Option(help="overlap, outcome, heterogeneity or calibration; repeat for several. Each is paid for."),
    ] = None,
    calibration: Annotated[str, typer.Option(help="proven, or paper for the printed formulas.")] = "proven",
    accept_unproven: Annotated[
        bool, typer.Option("--accept-unproven", help="Needed with --calibration paper: no proof covers it.")
    ] = False,
    random_state: Annotated[
        int | None, typer.Option(help="A seed makes the noise reproducible, so the release NOT PRIVATE.")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(envvar="DPCATE_LEDGER", help="Charge the fit to this ledger: a file or a postgresql:// URL."),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in the ledger.")] = None,
    quiet: Quiet = False,
) -> None:
    """Fit a private effect function and write its release."""
    from dpcate import KnownPropensity, Ledger, PrivateCATE, Schema
    from dpcate.report.diagnoses import sentences
    from dpcate.spending import LedgerWarning

    require_writable(out)
    if (ledger is None) != (dataset is None):
        raise InputError("--ledger (or DPCATE_LEDGER) and --dataset go together: give both, or neither")
    if calibration == "paper" and not accept_unproven:
        raise InputError("--calibration paper is unproven; add --accept-unproven if a comparison is all you want")
    estimator = PrivateCATE(
        Schema.load(schema),
        epsilon=epsilon,
        delta=delta,
        learner=learner,
        second_stage=second_stage,
        nuisance=nuisance if known_propensity is None else KnownPropensity(known_propensity, outcome=nuisance),
        split=split,
        neighbours=neighbours,
        propensity_floor=propensity_floor,
        calibration=calibration,
        queries=queries,
        diagnostics=diagnostic or (),
        ledger=None if ledger is None else Ledger(ledger, dataset),
        random_state=random_state,
    )
    with progress_bar(quiet) as report, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LedgerWarning)
        release = estimator.fit(table=data, progress=report).release_
    release.save(out)
    for warning in caught:
        if issubclass(warning.category, LedgerWarning):
            print(f"warning: {warning.message}", file=sys.stderr)
    if not quiet:
        _print_summary(release)
        for name, found in sentences(release):
            console.print(f"[bold]{name}:[/bold] {found}", highlight=False)
        console.print(f"Release written to [bold]{out}[/bold].")
        if estimator.ledger is not None:
            left = estimator.ledger.account().epsilon_left()
            console.print(
                f"Charged to [bold]{dataset}[/bold]; left for Gaussian fits: ε = {left:.4g} at the grant's δ."
            )


@app.command()
def effect(
    release: Annotated[Path, typer.Argument(help="Release file.")],
    at: Annotated[Path, typer.Option(help="Table of points (.csv, .csv.gz or .parquet) with the covariates.")],
    out: Annotated[Path | None, typer.Option(help="Where the effects go; standard output if not given.")] = None,
    alpha: Annotated[float, typer.Option(help="Intervals at level 1 − alpha.")] = 0.1,
) -> None:
    """Effects with intervals at the given points, from the release alone."""
    from dpcate import Release
    from dpcate.tables import header, read_columns

    if out is not None:
        require_writable(out)
    loaded = Release.load(release)
    covariates = read_columns(at, list(loaded.schema.covariates))
    content = _effects_csv(loaded, covariates, read_columns(at, header(at)), alpha)
    if out is None:
        sys.stdout.write(content.decode())
    else:
        write_atomically(out, content)
    if loaded.guarantee != "proven":
        print("warning: this release is UNPROVEN (no proof covers it)", file=sys.stderr)
    if not loaded.private:
        print("warning: this release is NOT PRIVATE (its noise is reproducible)", file=sys.stderr)


@app.command()
def report(
    release: Annotated[Path, typer.Argument(help="Release file.")],
    out: Annotated[Path, typer.Option(help="Where the page goes.")] = Path("report.html"),
    certificate: Annotated[Path | None, typer.Option(help="Where a one-page certificate goes.")] = None,
    profiles: Annotated[
        Path | None,
        typer.Option(help="Table of profiles whose effects are listed; other columns are shown as they are."),
    ] = None,
) -> None:
    """A self-contained page about a release, for physicians and boards, and a certificate to sign."""
    from dpcate import Release
    from dpcate.report import certificate_html, read_profiles, report_html

    for path in [out] if certificate is None else [out, certificate]:
        require_writable(path)
    content = read_bytes(release, "release file")
    loaded = Release.from_json(content)
    asked = None if profiles is None else read_profiles(loaded.schema, profiles)
    write_atomically(out, report_html(loaded, asked, content).encode())
    if certificate is not None:
        write_atomically(certificate, certificate_html(loaded, content).encode())


def _effects_csv(release, covariates, own_columns, alpha: float) -> bytes:
    effects, (low, high) = release.effect(covariates), release.effect_interval(covariates, alpha)
    taken = {"effect", "low", "high"} & set(own_columns)
    if taken:
        raise InputError(f"the points already have columns named {', '.join(sorted(taken))}; rename them")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*own_columns, "effect", "low", "high"])
    for row in zip(*own_columns.values(), effects, low, high, strict=True):
        writer.writerow(["" if cell is None or cell != cell else cell for cell in row])
    return text.getvalue().encode()


def _print_summary(release) -> None:
    table = Table(title=f"Release: effect of {release.schema.treatment.name} on {release.schema.outcome.name}")
    for column, justify in (("paid for", "left"), ("rows", "left"), ("spent", "left"), ("noise sd", "right")):
        table.add_column(column, justify=justify)
    for charge in release.charges:
        table.add_row(charge.name, charge.rows, charge.price, "" if charge.sd is None else f"{charge.sd:.3g}")
    console.print(table)
    promise = f"({release.epsilon:g}, {release.delta:g})-DP per person, {release.neighbours}, proof: {release.proof}"
    if release.guarantee != "proven":
        console.print(f"[bold red]UNPROVEN[/bold red]: no proof covers this release; it only claims {promise}")
    elif not release.private:
        console.print(f"[bold red]NOT PRIVATE[/bold red] (seeded noise); would be {promise}")
    else:
        console.print(promise)


def _where(error: Exception) -> str:
    """The kind of an unforeseen error and the line of ours that raised it, without its text."""
    place, trace = "unknown place", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "dpcate" in path.parts:
            place = f"{path.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"


def _fail(message: str, code: int) -> None:
    if message:
        print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
