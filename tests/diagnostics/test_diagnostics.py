"""Whole fits with diagnostics: what they cost, that they find what is there, and that they hold their level."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

import dpcate
from dpcate import Category, KnownNuisances, KnownPropensity, Number, Outcome, PrivateCATE, Release, Schema
from dpcate.diagnostics import NAMES, chosen, needs_held_out, share_of
from dpcate.errors import InputError
from dpcate.privacy import Declared, Gaussian, SampledGaussian
from dpcate.privacy.accounting import delta_of

SCHEMA = Schema(
    covariates={name: Number(0, 1) for name in ("x0", "x1", "x2")},
    treatment="treated",
    outcome=Outcome("y", low=-6, high=10),
)


def curve(x0, x1):
    return 2 * np.sin(3 * x0) + x1**2


def likely(x0):
    return 1 / (1 + np.exp(-3 * (x0 - 0.5)))


def trial(n, seed, slope=0.0, skewed=False):
    """Confounded rows whose effect is 1 + slope·(x0 − ½); errors with a tail that grows with x0, if skewed."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 3))
    treated = (rng.random(n) < likely(x[:, 0])).astype(float)
    error = (rng.exponential(size=n) - 1) * (0.5 + x[:, 0]) if skewed else rng.normal(size=n)
    return x, treated, curve(x[:, 0], x[:, 1]) + treated * (1 + slope * (x[:, 0] - 0.5)) + error


def found(n=3000, seed=0, epsilon=1.0, names=NAMES, slope=0.0, skewed=False, **settings):
    x, treated, outcome = trial(n, 70_000 + seed, slope, skewed)
    model = PrivateCATE(SCHEMA, epsilon=epsilon, delta=1e-5, diagnostics=names, random_state=seed, **settings)
    return model.fit(outcome, treated, X=x).release_


KNOWN = KnownNuisances(
    propensity=lambda columns: likely(columns["x0"]),
    outcome=lambda columns: curve(columns["x0"], columns["x1"]) + likely(columns["x0"]),
)


def test_prices_are_public_and_every_diagnostic_has_one():
    assert NAMES == ("overlap", "outcome", "heterogeneity", "calibration")
    assert [share_of(name) for name in NAMES] == [0.03, 0.03, 0.0, 0.0]
    assert [needs_held_out(name) for name in NAMES] == [False, False, True, True]
    assert all(share_of(name) > 0 or needs_held_out(name) for name in NAMES)
    assert chosen(["calibration", "overlap"]).names == ("overlap", "calibration")


def test_a_share_is_what_is_charged_and_what_the_rest_has_less():
    alone, asked = found(names=()), found(names=("overlap", "outcome"))
    total = math.fsum(charge.spent.mu**2 for charge in alone.charges)
    for name, prefix in (("overlap", "overlap:"), ("outcome", "outcome fit:")):
        spent = math.fsum(charge.spent.mu**2 for charge in asked.charges if charge.name.startswith(prefix))
        assert spent == pytest.approx(share_of(name) * total, rel=1e-9)
    assert math.fsum(charge.spent.mu**2 for charge in asked.charges) == pytest.approx(total, rel=1e-9)
    assert alone.diagnostics is None


def test_held_out_people_are_charged_apart_and_all_of_their_budget_is_used():
    release = found(names=("heterogeneity", "calibration"))
    budget = math.fsum(charge.spent.mu**2 for charge in found(names=()).charges)
    for part in ("part 1 of 2", "part 2 of 2"):
        spent = math.fsum(charge.spent.mu**2 for charge in release.charges if charge.rows in ("all rows", part))
        assert spent == pytest.approx(budget, rel=1e-9)
    apart = {charge.name.split(":")[0] for charge in release.charges if charge.rows == "part 2 of 2"}
    assert apart == {"held-out people", "heterogeneity", "calibration"}
    assert not any(charge.name.startswith("columns") and charge.rows != "all rows" for charge in release.charges)


def events(release, part):
    kinds = {"GaussianSpent": Gaussian, "SampledSpent": SampledGaussian, "DeclaredSpent": Declared}
    for charge in release.charges:
        parts = charge.rows.split(" of ")[0]
        if charge.rows == "all rows" or str(part) in parts:
            fields = {name: getattr(charge.spent, name) for name in charge.spent.__struct_fields__}
            yield kinds[type(charge.spent).__name__](**fields)


@pytest.mark.parametrize(
    ("second_stage", "split"),
    [*itertools.product(["moments", "features", "kernel"], ["none", "crossfit", "disjoint"]), ("network", "crossfit")],
)
def test_whatever_the_second_stage_nobody_loses_more_than_the_budget(second_stage, split):
    release = found(n=160, epsilon=3.0, second_stage=second_stage, split=split, learner="dr")
    for part in range(1, 4 if split != "none" else 3):
        assert delta_of(list(events(release, part)), 3.0, "replace-one") <= 1e-5 * (1 + 1e-6)
    assert all(getattr(release.diagnostics, name) is not None for name in NAMES)
    assert Release.from_json(release.to_json()) == release


def test_networks_under_add_or_remove_one_set_the_count_apart():
    release = found(n=160, epsilon=3.0, second_stage="network", neighbours="add-or-remove-one")
    for part in (1, 2):
        count, *rest = events(release, part)
        assert delta_of([count], 0.3, "add-or-remove-one") <= 1e-6 * (1 + 1e-6)
        assert delta_of(rest, 2.7, "add-or-remove-one") <= 9e-6 * (1 + 1e-6)


def test_with_a_large_budget_findings_are_those_of_the_rows():
    """ε = 100 against numpy on the same rows: overlap and R² of known models, slope and groups by closed forms."""
    n = 20_000
    x, treated, outcome = trial(n, 70_000, slope=3.0)
    release = found(n=n, epsilon=100.0, slope=3.0, nuisance=KNOWN, names=("overlap", "outcome"))
    propensity = likely(x[:, 0])
    for arm, counts in ((0, release.diagnostics.overlap.control), (1, release.diagnostics.overlap.treated)):
        exact = np.histogram(np.clip(propensity, 0.05, 0.95)[treated == arm], np.linspace(0, 1, 21))[0]
        assert np.abs(np.array(counts) - exact).max() < 6 * release.diagnostics.overlap.sd
    assert release.diagnostics.overlap.sd < 3
    residual = outcome - curve(x[:, 0], x[:, 1]) - propensity
    assert release.diagnostics.outcome.estimate == pytest.approx(1 - np.mean(residual**2) / outcome.var(), abs=0.02)

    judged = found(n=n, epsilon=100.0, slope=3.0, nuisance=KNOWN, names=("heterogeneity", "calibration"))
    calibration = judged.diagnostics.calibration
    predicted, effect = judged.effect(x), 1 + 3 * (x[:, 0] - 0.5)
    group = np.searchsorted(calibration.cuts, predicted, side="right")
    assert len(calibration.groups) == 5
    for place in range(5):
        assert calibration.predicted[place] == pytest.approx(predicted[group == place].mean(), abs=0.05)
        assert calibration.estimate[place] == pytest.approx(effect[group == place].mean(), abs=0.4)
    slope = np.cov(effect, predicted)[0, 1] / predicted.var()
    assert judged.diagnostics.heterogeneity.estimate == pytest.approx(slope, abs=0.2)
    assert judged.diagnostics.heterogeneity.p_value < 1e-6


@pytest.mark.parametrize(
    ("n", "epsilon", "skewed", "fits"), [(3000, 1.0, False, 80), (3000, 5.0, True, 80), (400, 0.5, True, 60)]
)
def test_where_all_have_the_same_effect_evidence_is_found_no_more_often_than_the_level(n, epsilon, skewed, fits):
    """More rejections than these have a chance below 1e-6 if the test holds its level."""
    releases = [
        found(n, seed, epsilon, ("heterogeneity", "calibration"), skewed=skewed).diagnostics for seed in range(fits)
    ]
    assert sum(each.heterogeneity.p_value < 0.1 for each in releases) <= binom.isf(1e-6, fits, 0.1)
    assert sum(each.heterogeneity.p_value < 0.01 for each in releases) <= binom.isf(1e-6, fits, 0.01)
    zero = sum(each.heterogeneity.interval(0.1)[0] <= 0 <= each.heterogeneity.interval(0.1)[1] for each in releases)
    assert zero >= binom.ppf(1e-6, fits, 0.9)


def test_where_effects_differ_evidence_is_found():
    found_in = [found(10_000, seed, 4.0, ("heterogeneity",), slope=3.0).diagnostics.heterogeneity for seed in range(8)]
    assert all(each.p_value < 0.01 for each in found_in)
    assert np.median([each.estimate for each in found_in]) == pytest.approx(1.0, abs=0.2)


def test_intervals_of_outcome_fit_and_calibration_cover():
    """80 fits, 90% intervals: the truth of a large sample is covered at least as often as chance allows at 1e-6."""
    fits, covered, groups, inside = 80, 0, 0, 0
    x, _, outcome = trial(300_000, 1, slope=2.0, skewed=True)
    expected = curve(x[:, 0], x[:, 1]) + likely(x[:, 0])
    truth, effect = 1 - np.mean((outcome - expected) ** 2) / outcome.var(), 1 + 2 * (x[:20_000, 0] - 0.5)
    for seed in range(fits):
        release = found(3000, seed, 3.0, ("outcome", "calibration"), slope=2.0, skewed=True, nuisance=KNOWN)
        low, high = release.diagnostics.outcome.interval(0.1)
        covered += low <= truth <= high
        calibration, predicted = release.diagnostics.calibration, release.effect(x[:20_000])
        group = np.searchsorted(calibration.cuts, predicted, side="right")
        for place, part in enumerate(calibration.groups):
            excess = (effect - predicted)[group == place]
            if len(excess) > 100:
                low, high = part.excess.interval(0.1)
                groups, inside = groups + 1, inside + (low <= excess.mean() <= high)
    assert covered >= binom.ppf(1e-6, fits, 0.9)
    assert inside >= binom.ppf(1e-6, groups, 0.9)


def hostile(kind, n=60):
    rng = np.random.default_rng(0)
    frame = {
        "x0": rng.random(n), "x1": rng.random(n), "x2": rng.random(n),
        "treated": rng.integers(0, 2, n).astype(float), "y": rng.normal(size=n),
    }  # fmt: skip
    changes = {
        "all absent": {"y": np.full(n, np.nan)},
        "nobody treated": {"treated": np.zeros(n)},
        "everybody treated": {"treated": np.ones(n)},
        "constant outcome": {"y": np.full(n, 3.0)},
        "constant everything": {name: np.full(n, 0.5) for name in ("x0", "x1", "x2", "y")},
        "beyond all bounds": {"y": np.full(n, 1e300), "x0": np.full(n, -1e300)},
    }
    return {**frame, **changes[kind]}


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    "kind", ["all absent", "nobody treated", "everybody treated", "constant outcome", "constant everything",
             "beyond all bounds"],
)  # fmt: skip
def test_no_row_can_stop_a_release(kind, epsilon):
    for neighbours in ("replace-one", "add-or-remove-one"):
        model = PrivateCATE(
            SCHEMA, epsilon=epsilon, delta=1e-6, diagnostics=NAMES, neighbours=neighbours, random_state=0
        )
        release = model.fit(table=hostile(kind)).release_
        low, high = release.diagnostics.calibration.interval()
        assert (low <= high).all()
        assert 0 <= release.diagnostics.heterogeneity.p_value <= 1
        assert Release.from_json(release.to_json()) == release


def test_persons_with_several_rows_and_categories():
    rng, n = np.random.default_rng(0), 1200
    schema = Schema(
        covariates={"age": Number(18, 100), "sex": Category(["f", "m"])},
        treatment="treated", outcome=Outcome("y", low=0, high=1, binary=True), person="id", max_rows_per_person=3,
    )  # fmt: skip
    table = {
        "age": rng.uniform(18, 100, n), "sex": rng.choice(["f", "m"], n), "treated": rng.integers(0, 2, n),
        "y": rng.integers(0, 2, n), "id": [f"p{k // 3}" for k in range(n)],
    }  # fmt: skip
    one, three = (
        PrivateCATE(s, epsilon=2.0, delta=1e-6, diagnostics=NAMES, nuisance=KnownPropensity(0.5), random_state=0)
        .fit(table=table)
        .release_
        for s in (Schema(**{**fields(schema), "max_rows_per_person": 1}), schema)
    )
    assert three.diagnostics.overlap.sd == pytest.approx(3 * one.diagnostics.overlap.sd, rel=1e-6)
    sensitivities = [
        {charge.name: charge.sensitivity for charge in release.charges if charge.rows == "part 2 of 2"}
        for release in (one, three)
    ]
    assert sensitivities[1] == pytest.approx({name: 3 * value for name, value in sensitivities[0].items()})


def fields(schema):
    return {name: getattr(schema, name) for name in ("covariates", "treatment", "outcome", "person")}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"diagnostics": "overlap"}, "list of names out of overlap, outcome"),
        ({"diagnostics": ["overlaps"]}, "list of names"),
        ({"diagnostics": [None]}, "list of names"),
        ({"diagnostics": 3}, "list of names"),
        ({"diagnostics": NAMES, "calibration": "paper", "second_stage": "features", "split": "none"}, "private fits"),
        ({"diagnostics": NAMES, "second_stage": "kernel", "queries": [[0.1, 0.2, 0.3]]}, "the effect of everybody"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_a_row_is_read(settings, message):
    model = PrivateCATE(SCHEMA, epsilon=1.0, delta=1e-6, **settings)
    with pytest.raises(InputError, match=message):
        model.fit(table="no such file.csv")


def test_points_only_releases_are_diagnosed_too():
    release = found(n=300, queries=[[0.1, 0.2, 0.3]], second_stage="features")
    assert release.model.values
    assert all(getattr(release.diagnostics, name) is not None for name in NAMES)
    assert found(n=200, queries=[[0.1, 0.2, 0.3]], second_stage="kernel", names=("overlap",)).diagnostics.overlap


def test_the_parameter_survives_cloning():
    model = PrivateCATE(SCHEMA, epsilon=1.0, delta=1e-6, diagnostics=["overlap"])
    assert clone(model).get_params()["diagnostics"] == ["overlap"]


def test_a_ledger_lists_what_was_paid_for(tmp_path):
    ledger = dpcate.Ledger(tmp_path / "ledger.db", "trial")
    ledger.grant(dpcate.Grant.of(epsilon=2.0, delta=1e-5))
    x, treated, outcome = trial(300, 0)
    model = PrivateCATE(SCHEMA, epsilon=1.0, delta=1e-6, diagnostics=NAMES, ledger=ledger)
    model.fit(outcome, treated, X=x)
    details = str(ledger.history())
    for name in ("overlap: propensities by arm", "outcome fit: sums", "heterogeneity: slope", "calibration: groups"):
        assert name in details
    assert model.release_.private
