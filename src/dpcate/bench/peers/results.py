"""`dpcate bench peers`: run what is not kept yet, then write tables, figures and the page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from dpcate.bench.figures import Labels, budget_figure, save_figure
from dpcate.bench.page import Section, page_html
from dpcate.bench.peers import METHODS
from dpcate.bench.peers.cases import FULL, QUICK, TEST_POINTS, Plan
from dpcate.bench.peers.glance import WORDS, glance
from dpcate.bench.peers.measure import jobs
from dpcate.bench.peers.method import DELTA
from dpcate.bench.peers.tables import HEAD, Cell, by_source, cells, csv_text, groups, markdown, overview, rows
from dpcate.bench.run import NOT_RUN, Kept, Progress, run_jobs
from dpcate.bench.versions import environment
from dpcate.errors import InputError
from dpcate.files import write_atomically

TITLE = "dpcate next to its peers"
INTRODUCTION = (
    "Medians over seeds; coverage is a mean. PEHE is the root mean squared error of the effect at points held out; in "
    "brackets, or as × best private peer, its ratio to the best method of others that claims privacy. The constant is "
    "the exact one: the mean of the true effect. DP-EBM is nominally private only: interpret adds up residuals that "
    "nothing clips. Noise is seeded here so that the tables can be made again; a release for real rows must not be. "
    "Every method runs at its library's defaults. Seconds are the processor's for a fit, whose median includes no "
    "compilation once a shape has been seen; memory is how far a fit raised the peak of its process. Where fewer "
    "seeds were run than planned, the cell says how many."
)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What of the missing runs is made: those of some methods (all if none is named), of the first seeds, and begun
    within a time. The tables show all that is kept either way."""

    only: tuple[str, ...] = ()
    seeds: int | None = None
    seconds: float = math.inf

    def __post_init__(self) -> None:
        unknown = [name for name in self.only if name not in METHODS]
        if unknown:
            raise InputError(f"there is no method {unknown[0]!r}; there are {', '.join(METHODS)}")


def compare(folder: Path, *, quick: bool, workers: int, progress: Progress, part: Part) -> list[Cell]:
    """Everything that `dpcate bench peers` writes, from the runs kept in results.jsonl and those still missing."""
    plan = QUICK if quick else FULL
    return write_comparison(folder, plan, tuple(METHODS), workers=workers, progress=progress, part=part)


def write_comparison(
    folder: Path, plan: Plan, methods: tuple[str, ...], *, workers: int, progress: Progress, part: Part | None = None
) -> list[Cell]:
    part, kept = part or Part(), Kept(folder / "results.jsonl")
    missing = jobs(replace(plan, seeds=plan.seeds[: part.seeds]), part.only or methods)
    run_jobs(missing, kept, workers=workers, progress=progress, seconds=part.seconds)
    work = list(jobs(plan, methods))
    table = cells(plan, methods, work, [kept.get(job) or NOT_RUN for job in work])
    figures = {_slug(group[0]): _figures(group) for group in by_source(table)}
    for slug, pair in figures.items():
        for kind, figure in pair.items():
            save_figure(folder, f"{kind}-{slug}", figure)
    write_atomically(folder / "peers.csv", csv_text(table).encode())
    write_atomically(folder / "peers.md", _markdown(table).encode())
    page = page_html(TITLE, INTRODUCTION, _sections(table, figures), _settings(plan))
    write_atomically(folder / "peers.html", page.encode())
    return table


def _figures(group: Sequence[Cell]) -> dict[str, Figure]:
    """PEHE against ε for all that has a budget, with the levels that have none; and coverage. Nothing if none ran."""
    title = f"{_name(group[0])}, δ = {DELTA:g}: medians and quartiles over seeds"
    budgets, levels = {}, {}
    coverage: dict[str, dict[float, list[float]]] = {}
    for cell in group:
        if not cell.runs:
            continue
        if cell.method.needs_budget:
            budgets.setdefault(cell.method.title, {})[cell.epsilon] = [run["pehe"] for run in cell.runs.values()]
        else:
            levels[cell.method.title] = cell.median("pehe") or 0.0
        if cell.method.role == "ours":
            coverage.setdefault(cell.method.title, {})[cell.epsilon] = [
                100 * run["coverage"] for run in cell.runs.values()
            ]
    errors = Labels(title=title, x="privacy budget ε", y="PEHE (units of the outcome)")
    covered = Labels(title=title, x="privacy budget ε", y="coverage of the 90% interval (%)")
    figures = {}
    if budgets or levels:
        figures["pehe"] = budget_figure(errors, budgets, levels, log=True)
    if coverage:
        figures["coverage"] = budget_figure(covered, coverage, {"nominal": 90.0}, log=False)
    return figures


def _sections(table: Sequence[Cell], figures: dict[str, dict[str, Figure]]) -> list[Section]:
    head, body = glance(table)
    sections = [Section(heading="At a glance", text=WORDS, head=head, rows=body)]
    for of_source in by_source(table):
        pair, name = figures[_slug(of_source[0])], _name(of_source[0])
        head, body = overview(of_source)
        sections.append(Section(heading=name, figure=pair.get("pehe"), head=head, rows=body))
        if "coverage" in pair:
            sections.append(Section(heading=f"{name}: coverage", figure=pair["coverage"]))
        sections += [
            Section(heading=f"{name}, ε = {group[0].epsilon:g}", head=HEAD, rows=rows(group))
            for group in groups(of_source)
        ]
    return sections


def _markdown(table: Sequence[Cell]) -> str:
    """The default at a glance, overviews, then every cell."""
    versions = ", ".join(f"{name} {version}" for name, version in environment().items())
    parts = [
        f"# {TITLE}\n\n{INTRODUCTION}\n\nMade with {versions}.\n",
        f"## At a glance\n\n{WORDS}\n",
        markdown(*glance(table)),
    ]
    for of_source in by_source(table):
        parts.append(f"## {_name(of_source[0])}\n\n![PEHE against the budget](pehe-{_slug(of_source[0])}.png)\n")
        parts.append(markdown(*overview(of_source)))
    parts.append("## Every cell\n")
    for group in groups(table):
        parts.append(f"### {_name(group[0])}, ε = {group[0].epsilon:g}\n\n{markdown(HEAD, rows(group))}")
    return "\n".join(parts)


def _settings(plan: Plan) -> dict[str, str]:
    return {
        "ε": ", ".join(f"{epsilon:g}" for epsilon in plan.epsilons),
        "δ": f"{DELTA:g}",
        "seeds": ", ".join(map(str, plan.seeds)),
        "held out": f"a tenth of the rows, at most {TEST_POINTS}",
        "hyper-parameters": "none passed: every library's defaults",
        **{f"guarantee: {method.title}": method.guarantee for method in METHODS.values()},
        **{f"note: {method.title}": method.note for method in METHODS.values() if method.note},
    }


def _name(cell: Cell) -> str:
    return f"{cell.source.name}, {cell.source.n:,} rows"


def _slug(cell: Cell) -> str:
    return f"{cell.source.name.lower().replace(' ', '-')}-{cell.source.n}"
