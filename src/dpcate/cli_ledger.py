"""`dpcate ledger`: what a dataset's fits may spend together, what they spent, and on what."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from dpcate.cli_options import NeighboursName
from dpcate.cli_parts import Json, Quiet, answer, progress_bar
from dpcate.privacy import Account, Charged, Grant, Granted, Ledger, granted_datasets
from dpcate.privacy.accounting import Gaussian
from dpcate.release import ChargedMechanism

app = typer.Typer(no_args_is_help=True, help="What fits on a dataset may spend together, and what they spent.")
console = Console()

Url = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="DPCATE_LEDGER",
        help="A file, or postgresql://USER@HOST/DATABASE; keep passwords in DPCATE_LEDGER or ~/.pgpass.",
    ),
]
Dataset = Annotated[str, typer.Option(help="The curator's name for the data, the same for all fits on it.")]


@app.command()
def grant(
    dataset: Dataset,
    epsilon: Annotated[float, typer.Option(help="ε of everything that will ever be released.")],
    delta: Annotated[float, typer.Option(help="δ of everything that will ever be released.")],
    ledger: Url = "ledger.db",
    neighbours: NeighboursName = "replace-one",
    person: Annotated[
        str | None, typer.Option(help="The schema's person column; without one, each row is a person.")
    ] = None,
    declared_epsilon: Annotated[
        float, typer.Option(help="Of ε, set aside for fits that are not all Gaussian: networks, supplied models.")
    ] = 0.0,
    declared_delta: Annotated[float, typer.Option(help="Of δ, set aside for them.")] = 0.0,
    extend: Annotated[bool, typer.Option("--extend", help="Replace the last grant by this larger one.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Grant a dataset a total budget, before any of it is spent."""
    account = Ledger(ledger, dataset)
    with progress_bar(quiet) as progress:
        progress("what the grant covers", 0.0)
        given = Grant.of(
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            declared=(declared_epsilon, declared_delta),
            person=person,
        )
        progress("writing the grant", 0.9)
        account.grant(given, extend=extend)
    if as_json:
        answer(account_facts(dataset, account.account()))


@app.command()
def show(
    ledger: Url = "ledger.db",
    dataset: Annotated[str | None, typer.Option(help="One dataset; all of them if not given.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Granted, spent and left, by dataset; ε are composed at the grant's δ, not added up."""
    with progress_bar(quiet) as progress:
        progress("reading the ledger", 0.0)
        names = granted_datasets(ledger) if dataset is None else [dataset]
        lines = []
        for name in names:
            progress("composing charges", len(lines) / len(names))
            lines.append(account_facts(name, Ledger(ledger, name).account()))
    if as_json:
        answer(lines)
        return
    table = Table("dataset", "ε granted", "at δ", "ε spent", "ε left", "fits")
    for line in lines:
        left = f"{line['epsilon_left']:.4g}"
        if line["declared_epsilon"]:
            left += f", and (ε, δ) = ({line['declared_epsilon_left']:.4g}, {line['declared_delta_left']:.3g}) set aside"
        granted = f"{line['epsilon']:g}"
        table.add_row(
            line["dataset"], granted, f"{line['delta']:g}", f"{line['epsilon_spent']:.4g}", left, str(line["fits"])
        )
    console.print(table)


@app.command()
def history(
    dataset: Dataset,
    ledger: Url = "ledger.db",
    details: Annotated[bool, typer.Option("--details", help="With all that each release paid for.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Every grant and every charge of a dataset."""
    with progress_bar(quiet) as progress:
        progress("reading the ledger", 0.0)
        entries = Ledger(ledger, dataset).history()
    if as_json:
        answer([_machine(entry) for entry in entries])
        return
    table = Table("time (UTC)", "what", "ε", "δ", "charged as", "release (sha256)")
    for entry in entries:
        table.add_row(*_row(entry))
        for paid in _paid(entry) if details else ():
            table.add_row("", f"  {paid.name}, {paid.rows}", "", "", f"  {paid.price}", "")
    console.print(table)


def account_facts(name: str, account: Account) -> dict[str, Any]:
    """What was granted, spent and is left, for machines."""
    budget, declared, left = account.grant.budget, account.grant.declared, account.declared_left()
    return {
        "dataset": name,
        **asdict(budget),
        "person": account.grant.person,
        "declared_epsilon": declared.epsilon,
        "declared_delta": declared.delta,
        "fits": len(account.charges),
        "epsilon_spent": account.epsilon_spent(),
        "epsilon_left": account.epsilon_left(),
        "declared_epsilon_left": left.epsilon,
        "declared_delta_left": left.delta,
    }


def _row(entry: Granted | Charged) -> list[str]:
    at = entry.at[:19].replace("T", " ")
    if isinstance(entry, Granted):
        budget, aside = entry.grant.budget, entry.grant.declared
        parts = f"μ = {entry.grant.mu:.4g}" + (f", ({aside.epsilon:g}, {aside.delta:g}) aside" if aside.epsilon else "")
        unit = "each row" if entry.grant.person is None else f"by {entry.grant.person}"
        what = f"grant, {budget.neighbours}, {unit}"
        return [at, what, f"{budget.epsilon:g}", f"{budget.delta:g}", parts, ""]
    event = f"μ = {entry.event.mu:.4g}" if isinstance(entry.event, Gaussian) else "(ε, δ)"
    release = entry.sha256[:12] if entry.sha256 else "none recorded"
    return [at, f"fit {entry.number}", f"{entry.epsilon:g}", f"{entry.delta:g}", event, release]


def _paid(entry: Granted | Charged) -> list[ChargedMechanism]:
    if isinstance(entry, Granted) or entry.details is None:
        return []
    return msgspec.json.decode(entry.details, type=list[ChargedMechanism])


def _machine(entry: Granted | Charged) -> dict[str, Any]:
    if isinstance(entry, Granted):
        return {"what": "grant", **asdict(entry)}
    return {"what": "fit", **asdict(entry), "details": json.loads(entry.details) if entry.details else None}
