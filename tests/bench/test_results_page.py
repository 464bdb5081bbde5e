"""The results page shows what the commands produced, whole."""

import csv
from pathlib import Path

from dpcate.bench.peers import METHODS
from dpcate.bench.peers.cases import FULL
from dpcate.bench.peers.tables import HEAD

DOCS = Path(__file__).parents[2] / "docs"
PEERS = DOCS / "results" / "peers"


def glance(page):
    """The lines of its table of datasets."""
    lines = page.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| dataset | ε = "))
    return lines[first : first + 2 + len(FULL.sources)]


def test_the_page_has_the_table_that_was_produced():
    table = glance(DOCS / "results.md")
    assert table == glance(PEERS / "peers.md")
    assert [line.split(",")[0] for line in table[2:]] == [f"| {source.name}" for source in FULL.sources]


def test_every_cell_of_the_plan_is_there_with_a_number_or_a_reason():
    rows = list(csv.DictReader((PEERS / "peers.csv").read_text().splitlines()))
    assert list(rows[0]) == ["dataset", "rows", "epsilon", *HEAD]
    titles = [method.title for method in METHODS.values()]
    expected = [
        (source.name, str(source.n), f"{epsilon:g}", title)
        for source in FULL.sources
        for epsilon in FULL.epsilons
        for title in titles
    ]
    assert [(row["dataset"], row["rows"], row["epsilon"], row["method"]) for row in rows] == expected
    assert all(cell.strip() for row in rows for cell in row.values())
    for row in rows:
        assert row["PEHE"].startswith(("cannot run: ", "not run: ")) or float(row["PEHE"]) >= 0


def test_every_dataset_has_its_figures():
    for source in FULL.sources:
        slug = f"{source.name.lower().replace(' ', '-')}-{source.n}"
        assert {f"pehe-{slug}.png", f"coverage-{slug}.png"} <= {path.name for path in PEERS.iterdir()}
