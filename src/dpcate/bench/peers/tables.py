"""Runs put together: medians over seeds, ratios within a cell, and words where there is no number."""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
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


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method on one dataset at one budget: the runs that succeeded, of how many seeds, and why one did not."""

    method: Method
    source: Source
    epsilon: float
    runs: Mapping[int, Result]  # by seed
    seeds: int
    reason: str

    def median(self, field: str, among: Collection[int] | None = None) -> float | None:
        """Over the seeds that were run, or those `among` them."""
        values = [run[field] for seed, run in self.runs.items() if field in run and (among is None or seed in among)]
        return median(values) if values else None


def cells(plan: Plan, methods: Sequence[str], jobs: Iterable[Job], results: Iterable[Result]) -> list[Cell]:
    """In the order of the plan; a method that no budget changes has the same runs at each."""
    found: dict[tuple[Any, ...], dict[int, Result]] = {}
    for job, result in zip(jobs, results, strict=True):
        key = (job.key["method"], job.key["dataset"], job.key["n"], job.key["epsilon"])
        found.setdefault(key, {})[job.key["seed"]] = result  # NOT_RUN counts as planned
    return [
        _cell(METHODS[name], source, epsilon, found)
        for source in plan.sources
        for epsilon in plan.epsilons
        for name in methods
    ]


def _cell(method: Method, source: Source, epsilon: float, found: dict[tuple[Any, ...], dict[int, Result]]) -> Cell:
    results = found[method.name, source.name, source.n, epsilon if method.needs_budget else None]
    reasons = [result[FAILED] for result in results.values() if FAILED in result]
    return Cell(
        method=method,
        source=source,
        epsilon=epsilon,
        runs={seed: result for seed, result in results.items() if result and FAILED not in result},
        seeds=len(results),
        reason=reasons[0] if reasons else "",
    )


def rows(group: Sequence[Cell]) -> list[list[str]]:
    """The cells of one dataset and budget as text, with ratios of medians to the exact constant and the best peer."""
    constant = next((cell for cell in group if cell.method.name == "constant-exact"), None)
    best = best_of(cell for cell in group if is_peer(cell))
    return [_row(cell, constant, best) for cell in group]


def _row(cell: Cell, constant: Cell | None, best: Cell | None) -> list[str]:
    if not cell.runs:
        words = [f"cannot run: {cell.reason}" if cell.reason else NO_TIME, *["not run"] * (len(HEAD) - 4)]
        return [cell.method.title, *words, cell.method.guarantee, f"0 of {cell.seeds}"]
    interval = [cell.method.no_interval] * 2
    if not cell.method.no_interval:
        coverage = sum(run["coverage"] for run in cell.runs.values()) / len(cell.runs)
        interval = [f"{coverage:.0%}", number(cell.median("width"))]
    return [
        cell.method.title,
        number(cell.median("pehe")),
        ratio(cell, constant, "no constant ran"),
        ratio(cell, best, "no peer ran"),
        number(cell.median("ate_error")),
        *interval,
        number(cell.median("seconds")),
        f"{cell.median('mebibytes'):.0f}",
        cell.method.guarantee,
        f"{len(cell.runs)} of {cell.seeds}" + (f" ({cell.reason})" if cell.reason else ""),
    ]


def is_peer(cell: Cell) -> bool:
    return cell.method.role == "peer" and cell.method.private


def best_of(some: Iterable[Cell]) -> Cell | None:
    """The cell with the smallest PEHE of those that ran."""
    return min((cell for cell in some if cell.runs), key=lambda cell: cell.median("pehe"), default=None)


def ratio(cell: Cell, reference: Cell | None, missing: str) -> str:
    """Of medians over the seeds that both have: datasets differ from seed to seed."""
    common = cell.runs.keys() & reference.runs.keys() if reference else set()
    return f"{cell.median('pehe', common) / reference.median('pehe', common):.2f}×" if common else missing


def number(value: float | None) -> str:
    return "not run" if value is None else f"{value:.3g}"


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
