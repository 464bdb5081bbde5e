"""Runs put together: medians over seeds, ratios within a cell, and words where there is no number."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dpcate.bench.peers import METHODS, Method
from dpcate.bench.peers.cases import Plan, Source
from dpcate.bench.run import FAILED, Job, Result

HEAD = (
    "method",
    "PEHE",
    "× constant",
    "× best private peer",
    "ATE error",
    "coverage of 90%",
    "width",
    "fit seconds",
    "peak MiB",
    "guarantee",
    "seeds",
)
NO_TIME = "not run: no time was given to it"
DEFAULT = "dpcate-moments"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method on one dataset at one budget: the runs that succeeded, of how many seeds, and why one did not."""

    method: Method
    source: Source
    epsilon: float
    runs: tuple[Result, ...]
    seeds: int
    reason: str

    def median(self, field: str) -> float | None:
        values = [run[field] for run in self.runs if field in run]
        return median(values) if values else None


def cells(plan: Plan, methods: Sequence[str], jobs: Iterable[Job], results: Iterable[Result]) -> list[Cell]:
    """In the order of the plan; a method that no budget changes has the same runs at each."""
    found: dict[tuple[Any, ...], list[Result]] = {}
    for job, result in zip(jobs, results, strict=True):
        key = (job.key["method"], job.key["dataset"], job.key["n"], job.key["epsilon"])
        found.setdefault(key, []).append(result)  # NOT_RUN counts as planned
    return [
        _cell(METHODS[name], source, epsilon, found)
        for source in plan.sources
        for epsilon in plan.epsilons
        for name in methods
    ]


def _cell(method: Method, source: Source, epsilon: float, found: dict[tuple[Any, ...], list[Result]]) -> Cell:
    results = found[method.name, source.name, source.n, epsilon if method.needs_budget else None]
    reasons = [result[FAILED] for result in results if FAILED in result]
    return Cell(
        method=method,
        source=source,
        epsilon=epsilon,
        runs=tuple(result for result in results if result and FAILED not in result),
        seeds=len(results),
        reason=reasons[0] if reasons else "",
    )


def rows(group: Sequence[Cell]) -> list[list[str]]:
    """The cells of one dataset and budget as text, with ratios of medians to the exact constant and the best peer."""
    constant = next((cell.median("pehe") for cell in group if cell.method.name == "constant-exact"), None)
    best, _ = _least([cell for cell in group if _is_peer(cell.method)])
    return [_row(cell, constant, best) for cell in group]


def _row(cell: Cell, constant: float | None, best: float | None) -> list[str]:
    pehe = cell.median("pehe")
    if pehe is None:
        words = [f"cannot run: {cell.reason}" if cell.reason else NO_TIME, *["not run"] * (len(HEAD) - 4)]
        return [cell.method.title, *words, cell.method.guarantee, f"0 of {cell.seeds}"]
    interval = [cell.method.no_interval] * 2
    if not cell.method.no_interval:
        coverage = sum(run["coverage"] for run in cell.runs) / len(cell.runs)
        interval = [f"{coverage:.0%}", _number(cell.median("width"))]
    return [
        cell.method.title,
        _number(pehe),
        _ratio(pehe, constant, "no constant ran"),
        _ratio(pehe, best, "no peer ran"),
        _number(cell.median("ate_error")),
        *interval,
        _number(cell.median("seconds")),
        f"{cell.median('mebibytes'):.0f}",
        cell.method.guarantee,
        f"{len(cell.runs)} of {cell.seeds}" + (f" ({cell.reason})" if cell.reason else ""),
    ]


def csv_text(all_cells: Sequence[Cell]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["dataset", "rows", "epsilon", *HEAD])
    for group in groups(all_cells):
        first = group[0]
        writer.writerows([first.source.name, first.source.n, f"{first.epsilon:g}", *row] for row in rows(group))
    return text.getvalue()


def groups(all_cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells of one dataset and budget together."""
    grouped: dict[tuple[str, int, float], list[Cell]] = {}
    for cell in all_cells:
        grouped.setdefault((cell.source.name, cell.source.n, cell.epsilon), []).append(cell)
    return list(grouped.values())


def by_source(all_cells: Sequence[Cell]) -> list[list[Cell]]:
    grouped: dict[tuple[str, int], list[Cell]] = {}
    for cell in all_cells:
        grouped.setdefault((cell.source.name, cell.source.n), []).append(cell)
    return list(grouped.values())


def overview(of_source: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """PEHE of each method against the budget for one dataset, with the ratio to the best private peer behind it.

    Where not all seeds are there, how many are.
    """
    by_budget = groups(of_source)
    head = ["method", "guarantee", *(f"ε = {group[0].epsilon:g}" for group in by_budget)]
    tables = [rows(group) for group in by_budget]
    body = []
    for number, cell in enumerate(by_budget[0]):
        shown = [table[number] for table in tables]
        body.append([cell.method.title, cell.method.guarantee, *map(_in_short, shown)])
    return head, body


def glance(all_cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    """A line per dataset: the default's PEHE against the best private method of others, the levels, and the seeds."""
    epsilons = sorted({cell.epsilon for cell in all_cells})
    head = ["dataset", *(f"ε = {epsilon:g}" for epsilon in epsilons), "exact constant", "best without privacy", "seeds"]
    body = []
    for of_source in by_source(all_cells):
        first = of_source[0].source
        kinds = [
            [cell for cell in of_source if belongs(cell.method)] for belongs in (_is_default, _is_peer, _is_ceiling)
        ]
        constant = [cell for cell in of_source if cell.method.name == "constant-exact"]
        seeds = ", ".join(str(min((len(cell.runs) for cell in kind), default=0)) for kind in kinds)
        compared = [_compared(group) for group in groups(of_source)]
        body.append([f"{first.name}, {first.n:,} rows", *compared, _least(constant)[1], _least(kinds[2])[1], seeds])
    return head, body


def _compared(group: Sequence[Cell]) -> str:
    (ours, our_text), (best, best_text) = (
        _least([cell for cell in group if belongs(cell.method)]) for belongs in (_is_default, _is_peer)
    )
    return f"{our_text} : {best_text}" + (f" ({_ratio(ours, best, '')})" if ours and best else "")


def _least(some: Iterable[Cell]) -> tuple[float | None, str]:
    """The smallest PEHE, and its text."""
    least = min((cell.median("pehe") for cell in some if cell.runs), default=None)
    return least, "not run" if least is None else _number(least)


def _is_default(method: Method) -> bool:
    return method.name == DEFAULT


def _is_peer(method: Method) -> bool:
    return method.role == "peer" and method.private


def _is_ceiling(method: Method) -> bool:
    return method.role == "ceiling"


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _in_short(row: Sequence[str]) -> str:
    cell = dict(zip(HEAD, row, strict=True))
    if cell["× constant"] == "not run":
        return cell["PEHE"]
    found, _, planned = cell["seeds"].split(" ")[:3]
    seeds = "" if found == planned else f"; {found} of {planned} seeds"
    return f"{cell['PEHE']} ({cell['× best private peer']}{seeds})"


def _ratio(value: float, reference: float | None, missing: str) -> str:
    return missing if not reference else f"{value / reference:.2f}×"


def _number(value: float | None) -> str:
    return f"{value:.3g}"
