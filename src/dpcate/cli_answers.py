"""What commands answer about a release: a table for people, a document for machines, effects as CSV or records."""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dpcate.errors import InputError
from dpcate.release import Release

console = Console()


def print_release(release: Release) -> None:
    """What was paid for, and what is promised."""
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
    for name, found in _findings(release).items():
        console.print(f"[bold]{name}:[/bold] {found}", highlight=False)


def release_facts(release: Release, content: bytes) -> dict[str, Any]:
    """The same for machines; `content` is the release file."""
    average = release.average
    return {
        "treatment": release.schema.treatment.name,
        "outcome": release.schema.outcome.name,
        "private": release.private,
        "guarantee": release.guarantee,
        "proof": release.proof,
        "epsilon": release.epsilon,
        "delta": release.delta,
        "neighbours": release.neighbours,
        "persons": release.persons,
        "average": None if average is None else {"value": average.value, "sd": average.sd},
        "diagnostics": _findings(release),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _findings(release: Release) -> dict[str, str]:
    """What each diagnostic that was paid for found, in words."""
    from dpcate.report.diagnoses import sentences

    return dict(sentences(release))


Columns = Mapping[str, Sequence[Any] | np.ndarray]


def effects_csv(release: Release, covariates: Columns, own_columns: Columns, alpha: float) -> bytes:
    """The points' own columns, then effect, low and high; an empty cell where a point lacks a value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in _effect_rows(release, covariates, own_columns, alpha):
        writer.writerow(["" if _missing(cell) else cell for cell in row])
    return text.getvalue().encode()


def effect_records(release: Release, covariates: Columns, own_columns: Columns, alpha: float) -> list[dict[str, Any]]:
    """The same for machines; null where a point lacks a value."""
    names, *rows = _effect_rows(release, covariates, own_columns, alpha)
    return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]


def _effect_rows(release: Release, covariates: Columns, own: Columns, alpha: float) -> Iterator[list[Any]]:
    effects, (low, high) = release.effect(covariates), release.effect_interval(covariates, alpha)
    taken = {"effect", "low", "high"} & set(own)
    if taken:
        raise InputError(f"the points already have columns named {', '.join(sorted(taken))}; rename them")
    yield [*own, "effect", "low", "high"]
    yield from map(list, zip(*own.values(), effects, low, high, strict=True))


def _missing(cell: Any) -> bool:
    return cell is None or cell != cell


def _plain(cell: Any) -> Any:
    """A cell as JSON can hold it."""
    if _missing(cell) or cell in (float("inf"), float("-inf")):
        return None
    cell = cell.item() if isinstance(cell, np.generic) else cell
    return cell if isinstance(cell, str | bool | int | float) else str(cell)
