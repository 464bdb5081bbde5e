"""A line per dataset: the default against the best private method of others, and the levels that no budget changes.

Datasets differ from seed to seed, so all numbers of a line are medians over the seeds that the default and the private
methods of others have in common.
"""

from collections.abc import Sequence

from dpcate.bench.peers.tables import Cell, by_source, groups, is_peer, number

DEFAULT = "dpcate-moments"
WORDS = (
    "PEHE of this library's default : of the best private method of others (their ratio). The exact constant knows the "
    "mean of the true effect; the best without privacy is the best of EconML's. Seeds: those that the default and the "
    "private methods of others have in common, over which the medians of the line are taken."
)


def glance(all_cells: Sequence[Cell]) -> tuple[list[str], list[list[str]]]:
    epsilons = sorted({cell.epsilon for cell in all_cells})
    head = ["dataset", *(f"ε = {epsilon:g}" for epsilon in epsilons), "exact constant", "best without privacy", "seeds"]
    return head, [_line(of_source) for of_source in by_source(all_cells)]


def _line(of_source: Sequence[Cell]) -> list[str]:
    source, common = of_source[0].source, _common(of_source)
    constant = [cell for cell in of_source if cell.method.name == "constant-exact"]
    ceiling = [cell for cell in of_source if cell.method.role == "ceiling"]
    levels = [number(_least(some, common)) for some in (constant, ceiling)]
    compared = [_compared(group, common) for group in groups(of_source)]
    return [f"{source.name}, {source.n:,} rows", *compared, *levels, str(len(common))]


def _compared(group: Sequence[Cell], common: set[int]) -> str:
    ours = _least([cell for cell in group if cell.method.name == DEFAULT], common)
    best = _least([cell for cell in group if is_peer(cell)], common)
    return f"{number(ours)} : {number(best)}" + (f" ({ours / best:.2f}×)" if ours and best else "")


def _common(cells: Sequence[Cell]) -> set[int]:
    """Methods without any run do not count."""
    compared = [set(cell.runs) for cell in cells if cell.runs and (cell.method.name == DEFAULT or is_peer(cell))]
    return set.intersection(*compared) if compared else set()


def _least(cells: Sequence[Cell], common: set[int]) -> float | None:
    found = [cell.median("pehe", common) for cell in cells]
    return min((pehe for pehe in found if pehe is not None), default=None)
