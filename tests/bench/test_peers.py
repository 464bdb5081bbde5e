"""The comparison: no empty cell, files as promised, no settings passed, and errors that fall with the budget."""

import csv
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import dpcate
from dpcate.bench import printed as bench_printed
from dpcate.bench.peers import METHODS, networks, ours
from dpcate.bench.peers.cases import EPSILONS, FULL, QUICK, SEEDS, SOURCES, TINY, VARYING, Plan, case_of, synthetic
from dpcate.bench.peers.glance import glance
from dpcate.bench.peers.measure import jobs, measure
from dpcate.bench.peers.method import CASES
from dpcate.bench.peers.results import Part, write_comparison
from dpcate.bench.peers.tables import NO_TIME, Cell, ratio
from dpcate.bench.run import FAILED
from dpcate.bench.versions import files_of
from dpcate.cli_bench import peers
from dpcate.errors import InputError
from dpcate.nuisance import NetworkNuisance
from dpcate.paper import PaperFeatures, PaperKernel, PaperNetwork

FAST = ("dpcate-moments", "dpcate-kernel", "paper-functional", "constant-private", "constant-exact")
QUICKLY = ("dpcate-moments", "dpcate-features", "constant-private")
SLOWLY = ("dpcate-kernel", "dpcate-network", "dpsgd-t")
BOOSTING = ("ebm-t", "ebm-dr", "ebm-r")
SMALL = ("synthetic 1", 1500)
TEST_SEEDS = range(1000, 1005)
BENCH = ("bench/encoded.py", "bench/memory.py", "bench/peers/method.py")
RANGES = "nuisance/first_stage.py"  # keeps predictions within what is declared
CONTRACTS = ("data", "encoding.py", "schema.py", "tables.py", "extras.py", "privacy", RANGES, *BENCH)


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
    assert set(key) == {"method", "dataset", "n", "epsilon", "seed", "library", "cases", "delta"}
    for made_with in ("library", "cases"):
        assert re.fullmatch(r"dpcate \d+\.\d+\.\d+\+[0-9a-f]{10}", key[made_with])


def test_a_key_knows_the_file_of_its_dataset_alone():
    assert all(files_of((source.code,)) for source in SOURCES.values())
    by_dataset = {job.key["dataset"].split()[0]: job.key["cases"] for job in jobs(FULL, ("constant-exact",))}
    assert len(set(by_dataset.values())) == len(by_dataset) == 3


def executed(work):
    """The files of the package in which a function ran."""
    root, seen = Path(dpcate.__file__).parent, set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(Path(frame.f_code.co_filename))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {path for path in seen if path.is_relative_to(root)}


def assert_code_is_named(method):
    """A kept result is taken for one of this code: what computes it must be in its key.

    Left out are what reads rows, keeps predictions within declared ranges, and draws and bills noise of a given size:
    all of it has tests of its own.
    """
    source = SOURCES["synthetic 1", 1000]
    chosen, case = METHODS[method], case_of(source.name, source.n, 1000)

    def work():
        chosen.fit(chosen.prepare(case, 1000)[0], 1.0, 1000).effect(case.points)

    ran = executed(work) - {*files_of(chosen.code), *files_of((*CASES, source.code)), *files_of(CONTRACTS)}
    assert not ran
    assert files_of(chosen.code)


@pytest.mark.parametrize("method", ["paper-functional", "paper-kernel", "paper-network", "dpsgd-t", "constant-exact"])
def test_a_key_knows_the_code_that_computes(method):
    assert_code_is_named(method)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", sorted(name for name, method in METHODS.items() if method.library != "dpcate"))
def test_a_key_knows_the_code_that_computes_with_others(method):
    assert_code_is_named(method)


def test_what_stands_on_the_whole_library_is_keyed_by_it():
    whole = {name for name, method in METHODS.items() if not method.code}
    assert whole == {"dpcate-moments", "dpcate-features", "dpcate-kernel", "dpcate-network", "constant-private"}


def test_methods_of_others_get_even_scales():
    assert {name for name, method in METHODS.items() if method.knows_scales} == {
        name for name in METHODS if name.startswith(("dpcate-", "constant-"))
    }


@pytest.mark.peers
def test_even_scales_are_the_declared_ones_without_what_is_typical():
    stretched, even = (case_of("ACIC16 1", 4802, 1000, stretched=choice) for choice in (True, False))
    assert np.array_equal(stretched.train.X, even.train.X)
    before, after = stretched.train.schema.covariates, even.train.schema.covariates
    assert any(covariate.typical for covariate in before.values())
    assert not any(covariate.typical for covariate in after.values())
    assert all((after[name].low, after[name].high) == (c.low, c.high) for name, c in before.items())


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


def test_some_methods_only_and_no_time_leave_words_not_gaps(tmp_path):
    """Tables are drawn from what is kept: by this run, by an earlier one, or nothing."""
    plan = Plan((synthetic(1, 1000),), epsilons=(1.0, 10.0), seeds=(1000, 1001, 1002))
    settings = {"workers": 1, "progress": lambda label, done: None}
    methods = ("constant-private", "constant-exact")
    nothing = write_comparison(tmp_path, plan, methods, part=Part(seconds=0), **settings)
    assert [(len(cell.runs), cell.seeds) for cell in nothing] == [(0, 3)] * 4
    table = write_comparison(tmp_path, plan, methods, part=Part(only=("constant-exact",), seeds=2), **settings)
    assert [(len(cell.runs), cell.seeds) for cell in table] == [(0, 3), (2, 3)] * 2
    rows = list(csv.DictReader((tmp_path / "peers.csv").read_text().splitlines()))
    assert [row["seeds"] for row in rows] == ["0 of 3", "2 of 3"] * 2
    assert all(cell.strip() for row in rows for cell in row.values())
    text = (tmp_path / "peers.md").read_text()
    assert text.count("no peer ran; 2 of 3 seeds") == 2
    assert NO_TIME in text


def test_a_method_that_does_not_exist_is_refused_before_anything_is_made(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InputError, match="no method 'ebm'; there are dpcate-moments, "):
        peers(out=out, only=["ebm"])
    assert not out.exists()


class Reached(Exception):
    """Raised in the place of a fit: all settings are made by then."""


def settings_passed(monkeypatch, method, owner, name):
    """The arguments with which a method makes `owner.name`, each time that it does so before the first fit."""
    original, passed = getattr(owner, name), []

    class Spy(original):
        def __init__(self, *arguments, **settings):
            passed.append(set(settings))
            super().__init__(*arguments, **settings)

        def fit(self, *arguments, **settings):
            raise Reached

    monkeypatch.setattr(owner, name, Spy)
    with pytest.raises(Reached):
        METHODS[method].fit(case_of(*SMALL, 1000), 1.0, 1000)
    assert passed
    return set().union(*passed)


@pytest.mark.parametrize("stage", ["moments", "features", "kernel", "network"])
def test_no_settings_are_passed_to_ours(monkeypatch, stage):
    passed = settings_passed(monkeypatch, f"dpcate-{stage}", ours, "PrivateCATE")
    assert passed == {"epsilon", "delta", "second_stage", "random_state"}


@pytest.mark.parametrize(
    ("method", "module", "stage"),
    [
        ("paper-kernel", bench_printed, PaperKernel),
        ("paper-network", bench_printed, PaperNetwork),
        ("paper-functional", bench_printed, PaperFeatures),
        ("dpsgd-t", networks, NetworkNuisance),
    ],
)
def test_no_settings_are_passed_to_the_paper_and_the_pair_of_networks(monkeypatch, method, module, stage):
    passed = []

    def spy(*arguments, **settings):
        passed.append((arguments, settings))
        raise Reached

    monkeypatch.setattr(module, stage.__name__, spy)
    chosen, case = METHODS[method], case_of(*SMALL, 1000)
    with pytest.raises(Reached):
        chosen.fit(chosen.prepare(case, 1000)[0], 1.0, 1000)
    assert passed == [((), {})]


NO_DEFAULT = {"model_y", "model_t", "model_final"}
DECLARED = {"epsilon", "delta", "privacy_bounds", "privacy_target_min", "privacy_target_max", "feature_types"}


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("method", "module", "name", "facts"),
    [
        ("ebm-t", "interpret.privacy", "DPExplainableBoostingRegressor", DECLARED),
        ("ebm-dr", "interpret.privacy", "DPExplainableBoostingClassifier", DECLARED),
        ("ebm-r", "interpret.privacy", "DPExplainableBoostingClassifier", DECLARED),
        ("econml-CausalForestDML", "econml.dml", "CausalForestDML", {"discrete_treatment"}),
        (
            "econml-NonParamDML",
            "econml.dml",
            "NonParamDML",
            {"discrete_treatment", "model_y", "model_t", "model_final"},
        ),
        ("econml-DRLearner", "econml.dr", "DRLearner", {"model_final"}),
    ],
)
def test_others_get_declared_facts_and_what_has_no_default(monkeypatch, method, module, name, facts):
    """NonParamDML has no defaults; the final stage of DRLearner is named in docs/results.md."""
    passed = settings_passed(monkeypatch, method, importlib.import_module(module), name)
    assert passed <= facts | {"random_state", "n_jobs"}


def test_at_a_glance_the_default_stands_against_the_best_private_peer():
    source, errors = synthetic(1, 1000), {"dpcate-moments": [1.0, 2.0, 3.0], "ebm-t": [5.0, 4.0], "ebm-r": [9.0, 9.0]}

    def cell(name, epsilon, runs):
        return Cell(
            method=METHODS[name],
            source=source,
            epsilon=epsilon,
            runs={seed: {"pehe": pehe} for seed, pehe in enumerate(runs)},
            seeds=3,
            reason="",
        )

    table = [cell(name, 1.0, runs) for name, runs in errors.items()]
    table += [cell("econml-DRLearner", 1.0, [0.5]), cell("dpcate-network", 1.0, [0.1]), cell("dpcate-moments", 5.0, [])]
    head, body = glance(table)
    assert head == ["dataset", "ε = 1", "ε = 5", "exact constant", "best without privacy", "seeds"]
    assert body == [["synthetic 1, 1,000 rows", "1.5 : 4.5 (0.33×)", "not run : not run", "not run", "0.5", "2"]]


def test_ratios_are_over_seeds_that_both_have():
    ours, peer = (
        Cell(method=METHODS[name], source=synthetic(1, 1000), epsilon=1.0, runs=runs, seeds=3, reason="")
        for name, runs in (
            ("dpcate-moments", {1: {"pehe": 1.0}, 2: {"pehe": 3.0}, 3: {"pehe": 50.0}}),
            ("ebm-t", {1: {"pehe": 2.0}, 2: {"pehe": 6.0}}),
        )
    )
    assert ratio(ours, peer, "none") == "0.50×"
    assert ratio(ours, None, "none") == "none"


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
    """Medians: less error with each ten times of the budget, and most of the way to the error without privacy.

    One number for everybody needs so little that it has to start from less, and has arrived before the end.
    """
    little = 0.01 if method == "constant-private" else 0.1
    small, middle, large = (
        np.median([measure(method, *SMALL, epsilon, seed)["pehe"] for seed in seeds]) for epsilon in (little, 1.0, 10.0)
    )
    limit = np.median([without_privacy(method, seed) for seed in seeds])
    assert middle < 0.97 * small
    assert large < (1.01 if method == "constant-private" else 0.97) * middle
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
