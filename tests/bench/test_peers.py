"""The comparison: no empty cell, files as promised, no settings passed, and errors that fall with the budget."""

import csv
import re

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from dpcate.bench.peers import METHODS
from dpcate.bench.peers.cases import EPSILONS, FULL, QUICK, SEEDS, TINY, VARYING, case_of
from dpcate.bench.peers.measure import jobs, measure
from dpcate.bench.peers.results import write_comparison
from dpcate.bench.run import FAILED

FAST = ("dpcate-moments", "dpcate-kernel", "paper-functional", "constant-private", "constant-exact")
QUICKLY = ("dpcate-moments", "dpcate-features", "constant-private")
SLOWLY = ("dpcate-kernel", "dpcate-network", "dpsgd-t")
BOOSTING = ("ebm-t", "ebm-dr", "ebm-r")
SMALL = ("synthetic 1", 1500)
TEST_SEEDS = range(1000, 1005)


def test_the_plan_is_the_issue_s():
    names = {(source.name, source.n) for source in FULL.sources}
    assert {(f"synthetic {which}", n) for which in (1, 2) for n in (3000, 30_000)} <= names
    assert {f"ACIC16 {instance}" for instance in VARYING} | {"IHDP B"} <= {name for name, _ in names}
    assert FULL.epsilons == EPSILONS == (0.1, 0.5, 1.0, 5.0, 10.0)
    assert len(FULL.seeds) == len(SEEDS) == 10
    assert not set(SEEDS) & {*QUICK.seeds, *TEST_SEEDS}  # a quick look is no look at the results
    assert len(list(jobs(QUICK, tuple(METHODS)))) < 150


def test_a_run_has_a_key_of_its_own():
    names = [job.name for job in jobs(FULL, tuple(METHODS))]
    assert len(set(names)) == len(names)
    key = next(iter(jobs(QUICK, ("dpcate-moments",)))).key
    assert set(key) == {"method", "dataset", "n", "epsilon", "seed", "library", "delta"}
    assert re.fullmatch(r"dpcate \d+\.\d+\.\d+\+[0-9a-f]{10}", key["library"])


def test_nobody_but_the_exact_constant_can_read_the_truth():
    case = case_of(*SMALL, 1000)
    assert (case.train.tau, case.train.propensity, case.train.outcome_control) == (None, None, None)
    held_out = {tuple(point) for point in case.points}
    assert len(held_out) == 150
    assert not held_out & {tuple(row) for row in case.train.X}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Tables and figures of a few methods, one of which cannot take the larger dataset."""
    folder = tmp_path_factory.mktemp("peers")
    seen = []
    table = write_comparison(folder, TINY, FAST, workers=2, progress=lambda label, done: seen.append(done))
    assert seen[-1] == 1.0
    return folder, table


def test_no_cell_is_empty(written):
    folder, _ = written
    rows = list(csv.reader((folder / "peers.csv").read_text().splitlines()))
    assert len(rows) == 1 + 2 * 2 * len(FAST)
    assert all(cell.strip() and cell != "nan" for row in rows for cell in row)
    lines = [line for line in (folder / "peers.md").read_text().splitlines() if line.startswith("|")]
    assert all(cell.strip() for line in lines for cell in line.strip("|").split(" | "))


def test_a_method_that_cannot_run_says_why(written):
    folder, table = written
    (refused,) = {cell.reason for cell in table if not cell.runs}
    assert refused == "the exact kernel takes at most 6000 rows; use second_stage='features' for more"
    for name in ("peers.csv", "peers.md"):
        assert f"cannot run: {refused}" in (folder / name).read_text()


def test_files_and_a_page_that_loads_nothing(written):
    folder, _ = written
    names = {path.name for path in folder.iterdir()}
    figures = {
        f"{kind}-synthetic-1-{n}.{end}" for kind in ("pehe", "coverage") for n in (1500, 7000) for end in ("png", "svg")
    }
    assert names == figures | {"results.jsonl", "peers.csv", "peers.md", "peers.html"}
    page = (folder / "peers.html").read_text()
    assert "://" not in page
    assert page.count("<img") == 4
    assert "dpcate" in page
    assert "numpy" in page
    assert "residuals that nothing clips" in page


def test_ratios_are_within_a_cell(written):
    folder, _ = written
    for row in csv.DictReader((folder / "peers.csv").read_text().splitlines()):
        if row["method"] == "exact constant":
            assert row["× constant"] == "1.00×"
            assert float(row["ATE error"]) < 1e-12
        if not row["PEHE"].startswith("cannot run"):
            assert row["× best private peer"] == "no peer ran"
            assert float(row["fit seconds"]) >= 0


def without_privacy(method, seed):
    """The error that nobody's privacy costs: the exact constant's, or that of boosted trees in each arm."""
    if method == "constant-private":
        return measure("constant-exact", *SMALL, None, seed)["pehe"]
    case = case_of(*SMALL, seed)
    arms = [arm == case.train.T for arm in (0, 1)]
    fits = [GradientBoostingRegressor(random_state=0).fit(case.train.X[arm], case.train.Y[arm]) for arm in arms]
    control, treated = (fit.predict(case.points) for fit in fits)
    return np.sqrt(np.mean((treated - control - case.tau) ** 2))


def assert_error_falls(method, seeds):
    """Medians: less error with much more budget, and most of the way to the error without privacy.

    One number for everybody needs so little that it has to start from less.
    """
    little = 0.01 if method == "constant-private" else 0.1
    small, large = (
        np.median([measure(method, *SMALL, epsilon, seed)["pehe"] for seed in seeds]) for epsilon in (little, 10.0)
    )
    limit = np.median([without_privacy(method, seed) for seed in seeds])
    assert large < 0.97 * small
    assert abs(large - limit) < 0.5 * (small - limit)


@pytest.mark.parametrize("method", QUICKLY)
def test_error_falls_with_the_budget(method):
    assert_error_falls(method, TEST_SEEDS)


@pytest.mark.parametrize("method", SLOWLY)
def test_error_falls_with_the_budget_slow_ones(method):
    assert_error_falls(method, TEST_SEEDS[:3])


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", BOOSTING)
def test_error_falls_with_the_budget_boosting(method):
    assert_error_falls(method, TEST_SEEDS)


def test_every_private_method_is_tested():
    assert {name for name, method in METHODS.items() if method.private} == {*QUICKLY, *SLOWLY, *BOOSTING}


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_answers_on_real_covariates(method):
    result = measure(method, "IHDP B", 747, 5.0, 1000)
    assert FAILED not in result
    assert ("coverage" in result) == (METHODS[method].no_interval == "")
    assert all(np.isfinite(value) for value in result.values())


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_the_ceiling_is_above_the_private_methods():
    forest = measure("econml-CausalForestDML", *SMALL, None, 1000)["pehe"]
    assert forest < measure("dpcate-features", *SMALL, 1.0, 1000)["pehe"]
