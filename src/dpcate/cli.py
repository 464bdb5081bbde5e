"""The command line: parse, call, answer. Errors are one line on standard error and carry nothing from a row."""

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from dpcate import cli_bench, cli_ledger, cli_plan, cli_schema
from dpcate._version import __version__
from dpcate.cli_answers import console, effect_records, effects_csv, print_release, release_facts
from dpcate.cli_options import (
    Delta,
    DiagnosticNames,
    Epsilon,
    Floor,
    LearnerName,
    NeighboursName,
    NuisanceName,
    Queries,
    SchemaFile,
    SecondStageName,
    SplitName,
    TrialPropensity,
)
from dpcate.cli_parts import Json, Quiet, answer, fail, make_folder, one_of, progress_bar, warn
from dpcate.errors import DpcateError, InputError, LedgerError
from dpcate.files import read_bytes, require_writable, write_atomically

if TYPE_CHECKING:
    from dpcate.privacy import Account, Ledger

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False)
app.add_typer(cli_bench.app, name="bench")
app.add_typer(cli_ledger.app, name="ledger")
app.add_typer(cli_schema.app, name="schema")
app.command()(cli_plan.plan)


def main() -> None:
    """Entry point: exit 0 when done, 2 on bad input or usage, 3 when the budget refuses, 1 on a defect of ours."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except DpcateError as error:
        fail(str(error), type(error).__name__, error.exit_code)
    except KeyboardInterrupt:
        fail("interrupted", "Interrupted", 130)
    except Exception as error:
        if hasattr(error, "format_message"):
            fail(error.format_message(), "UsageError", 2)
        place = _where(error)
        fail(f"internal error ({place}); its text is withheld because it could hold data", "InternalError", 1)


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
    as_json: Json = False,
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
        report("pictures and report", 1.0)
        files = {
            "release.json": release.to_json(),
            "effects.csv": effects_csv(release, columns, columns, alpha=0.1),
            "effect.png": picture(effect_figure(release, "x0", truth)),
            "report.html": report_html(release).encode(),
        }
        for name, content in files.items():
            write_atomically(out / name, content)
    error, constant = np.sqrt(np.mean((release.effect(data.X) - data.tau) ** 2)), data.tau.std()
    if as_json:
        errors = {"pehe": float(error), "pehe_of_constant": float(constant)}
        answer(
            {"files": [str(out / name) for name in files], **release_facts(release, files["release.json"]), **errors}
        )
    elif not quiet:
        print_release(release)
        console.print(
            f"Error of the private effect (PEHE): [bold]{error:.2f}[/bold]; a constant effect has "
            f"{constant:.2f}. Both are known because this data is simulated."
        )
        console.print(f"Open [bold]{out / 'report.html'}[/bold], or look at {out / 'effect.png'}.")


@app.command()
def fit(
    schema: SchemaFile,
    data: Annotated[Path, typer.Option(help="Table with the rows (.csv, .csv.gz or .parquet).")],
    epsilon: Epsilon,
    delta: Delta,
    out: Annotated[Path, typer.Option(help="Where the release goes.")] = Path("release.json"),
    learner: LearnerName = "r",
    second_stage: SecondStageName = "moments",
    nuisance: NuisanceName = "moments",
    known_propensity: TrialPropensity = None,
    split: SplitName = "none",
    neighbours: NeighboursName = "replace-one",
    propensity_floor: Floor = 0.05,
    queries: Queries = None,
    diagnostic: DiagnosticNames = None,
    calibration: Annotated[
        str, typer.Option(help="proven, or paper for the printed formulas.", autocompletion=one_of("proven", "paper"))
    ] = "proven",
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
    as_json: Json = False,
) -> None:
    """Fit a private effect function and write its release."""
    from dpcate import KnownPropensity, Ledger, PrivateCATE, Schema
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
            warn(str(warning.message), as_json)
    account = None if estimator.ledger is None or (quiet and not as_json) else _account(estimator.ledger, as_json)
    if as_json:
        charged = None if account is None else cli_ledger.account_facts(dataset, account)
        answer({"release": str(out), **release_facts(release, release.to_json()), "ledger": charged})
    elif not quiet:
        print_release(release)
        console.print(f"Release written to [bold]{out}[/bold].")
        if account is not None:
            left = account.epsilon_left()
            console.print(
                f"Charged to [bold]{dataset}[/bold]; left for Gaussian fits: ε = {left:.4g} at the grant's δ."
            )


@app.command()
def effect(
    release: Annotated[Path, typer.Argument(help="Release file.")],
    at: Annotated[Path, typer.Option(help="Table of points (.csv, .csv.gz or .parquet) with the covariates.")],
    out: Annotated[Path | None, typer.Option(help="Where the effects go; standard output if not given.")] = None,
    alpha: Annotated[float, typer.Option(help="Intervals at level 1 − alpha.")] = 0.1,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Effects with intervals at the given points, from the release alone."""
    from dpcate import Release
    from dpcate.tables import header, read_columns

    if out is not None:
        require_writable(out)
    loaded = Release.load(release)
    with progress_bar(quiet) as progress:
        progress("reading points", 0.0)
        points = read_columns(at, list(loaded.schema.covariates)), read_columns(at, header(at))
        progress("effects and intervals", 0.3)
        records = effect_records(loaded, *points, alpha) if as_json and out is None else None
        content = effects_csv(loaded, *points, alpha) if records is None else b""
    if out is not None:
        write_atomically(out, content)
    if as_json:
        place = {"effects": records} if out is None else {"out": str(out)}
        answer({"private": loaded.private, "guarantee": loaded.guarantee, "alpha": alpha, **place})
    elif out is None:
        sys.stdout.write(content.decode())
    if loaded.guarantee != "proven":
        warn("this release is UNPROVEN (no proof covers it)", as_json)
    if not loaded.private:
        warn("this release is NOT PRIVATE (its noise is reproducible)", as_json)


@app.command()
def report(
    release: Annotated[Path, typer.Argument(help="Release file.")],
    out: Annotated[Path, typer.Option(help="Where the page goes.")] = Path("report.html"),
    certificate: Annotated[Path | None, typer.Option(help="Where a one-page certificate goes.")] = None,
    profiles: Annotated[
        Path | None,
        typer.Option(help="Table of profiles whose effects are listed; other columns are shown as they are."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """A self-contained page about a release, for physicians and boards, and a certificate to sign."""
    from dpcate import Release
    from dpcate.report import certificate_html, read_profiles, report_html

    for path in [out] if certificate is None else [out, certificate]:
        require_writable(path)
    content = read_bytes(release, "release file")
    loaded = Release.from_json(content)
    with progress_bar(quiet) as progress:
        progress("reading profiles", 0.0)
        asked = None if profiles is None else read_profiles(loaded.schema, profiles)
        progress("drawing the report", 0.1)
        write_atomically(out, report_html(loaded, asked, content).encode())
        if certificate is not None:
            progress("certificate", 0.9)
            write_atomically(certificate, certificate_html(loaded, content).encode())
    if as_json:
        pages = {"report": str(out), "certificate": None if certificate is None else str(certificate)}
        answer({**pages, **release_facts(loaded, content)})


def _account(ledger: "Ledger", as_json: bool) -> "Account | None":
    """The account after a fit; that it cannot be shown must not look as if there were no release."""
    try:
        return ledger.account()
    except LedgerError as error:
        warn(f"the release is written, but what is left of its grant is not known: {error}", as_json)
    return None


def _where(error: Exception) -> str:
    """The kind of an unforeseen error and the line of ours that raised it, without its text."""
    place, trace = "unknown place", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "dpcate" in path.parts:
            place = f"{path.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}"
