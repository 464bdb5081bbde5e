"""The spreads that a prediction tells apart, the scaling of large tables, the shares, and one closed form."""

import dataclasses
import math

import numpy as np
import pytest

import dpcate
from dpcate.planning import Assumptions, Question, predict
from dpcate.planning.simulation import QUICK, Effort, Group, Scaled, _prediction, _uncertainty, scale
from dpcate.privacy import gdp_mu

SCHEMA = dpcate.Schema(
    covariates={"x0": dpcate.Number(0, 1), "x1": dpcate.Number(0, 1)},
    treatment="treated",
    outcome=dpcate.Outcome("outcome", low=-3, high=3),
)
ASSUMED = Assumptions(outcome_sd=1.0, effect_sd=0.25, treated=0.5)


def question(rows=400, epsilon=1.0, schema=SCHEMA, **settings):
    return Question(
        schema=schema, rows=rows, epsilon=epsilon, delta=1e-6, assumptions=ASSUMED, settings=settings, alpha=0.1
    )


def made_up_groups(asked, noise, sampling, bias, width, stated):
    """Effects with independent errors of these sds at every point, around the truth and a bias."""
    rng, truth = np.random.default_rng(5), asked.stand_in.effect(asked.encoded_points)
    groups = []
    for _ in range(60):
        centre = truth + bias + sampling * rng.standard_normal(truth.size)
        groups.append(Group(centre + noise * rng.standard_normal((3, truth.size)), width, stated, ()))
    return groups


def test_noise_sampling_and_bias_are_told_apart():
    asked = question(rows=1000)
    groups = made_up_groups(asked, noise=0.3, sampling=0.2, bias=0.4, width=2.0, stated=False)
    found = _prediction(asked, Scaled(1000, 1.0, False), groups)
    assert found.noise_sd == pytest.approx(0.3, rel=0.02)
    assert found.noise_width == pytest.approx(2 * 1.6448536 * found.noise_sd)
    assert found.error == pytest.approx(math.sqrt(0.3**2 + 0.2**2 + 0.4**2), rel=0.02)
    assert found.width == 2.0
    assert (found.simulated_rows, found.simulated_fits) == (1000, 180)


def test_sampling_noise_is_brought_from_fewer_rows_to_all():
    asked = question(rows=4000)
    groups = made_up_groups(asked, noise=0.3, sampling=0.2, bias=0.4, width=2.0, stated=False)
    found = _prediction(asked, Scaled(1000, 1.0, False), groups)
    assert found.error == pytest.approx(math.sqrt(0.3**2 + 0.2**2 / 4 + 0.4**2), rel=0.02)
    reported = (2.0 / 2 / 1.6448536) ** 2 - 0.2**2 * 3 / 4
    assert found.width == pytest.approx(2 * 1.6448536 * math.sqrt(reported), rel=0.02)
    stated = made_up_groups(asked, noise=0.3, sampling=0.2, bias=0.4, width=2.0, stated=True)
    assert _prediction(asked, Scaled(1000, 1.0, False), stated).width == 2.0
    narrow = made_up_groups(asked, noise=0.3, sampling=0.2, bias=0.4, width=0.1, stated=False)
    least = math.sqrt(0.3**2 + 0.2**2 / 4)  # no narrower than what was seen to vary
    assert _prediction(asked, Scaled(1000, 1.0, False), narrow).width == pytest.approx(2 * 1.6448536 * least, rel=0.02)


def test_the_uncertainty_is_that_of_the_noise_sd():
    """One point, so the within variance is σ²χ²₂/2: the relative standard error of its root is 1/(2√groups)."""
    rng = np.random.default_rng(3)
    groups = [Group(rng.standard_normal((3, 1)), 1.0, True, ()) for _ in range(4000)]
    assert _uncertainty(groups) == pytest.approx(1 / (2 * math.sqrt(4000)), rel=0.1)


def test_large_tables_are_simulated_with_the_same_budget_per_row():
    asked = question(rows=40_000, second_stage="features")
    scaled = scale(asked)
    assert scaled.rows == 3000
    assert 3000 * gdp_mu(scaled.epsilon, 1e-6) == pytest.approx(40_000 * gdp_mu(1.0, 1e-6), rel=1e-6)
    assert not scaled.bound
    assert scale(question(rows=2000)) == Scaled(2000, 1.0, False)
    assert scale(question(rows=10**8)) == Scaled(10_000, 100.0, True)


def test_shares_are_those_of_a_real_fit():
    asked = question(second_stage="features", split="disjoint")
    data = dpcate.datasets.synthetic(1, 400, seed=0)
    release = (
        dpcate.PrivateCATE(data.schema, epsilon=1.0, delta=1e-6, second_stage="features", split="disjoint")
        .fit(data.Y, data.T, X=data.X)
        .release_
    )
    charged = {}
    for charge in release.charges:
        key = charge.name.split(":")[0], charge.rows
        charged[key] = charged.get(key, 0.0) + (charge.spent.mu / gdp_mu(1.0, 1e-6)) ** 2
    shares = predict(asked, QUICK).shares
    assert {(share.name, share.rows): share.fraction for share in shares} == pytest.approx(charged)
    for part in ("part 1 of 2", "part 2 of 2"):
        assert sum(share.fraction for share in shares if share.rows in ("all rows", part)) == pytest.approx(1.0)


def test_with_everything_known_and_a_large_budget_the_noise_is_the_closed_form():
    """Then only the coefficients' noise is left, whose sd is (2/15)·S·(nμ)^(−1/4) with S = four score scales over ρ.

    A score is w·e with |w| = 1/2, so its scale is half the sd of e, and S = 8 sds of e.
    """
    known = dpcate.KnownNuisances(propensity=0.5, outcome=lambda columns: np.zeros(len(columns["x0"])))
    asked = question(rows=3000, epsilon=20.0, second_stage="features", nuisance=known)
    left = math.sqrt(1.0 - 0.25 * 2 * 0.25**2)  # of the outcome's variance, after the effect's part
    mu = gdp_mu(20.0, 1e-6) * math.sqrt(
        0.96 * 0.86
    )  # the average's 4%; then a tenth for the constant, 4% for the interval
    expected = 2 / 15 * min(8 * left, 6.0) * (3000 * mu) ** -0.25
    assert predict(asked, Effort(fits=3, fewest=5, most=5)).noise_sd == pytest.approx(expected, rel=0.1)


def test_noise_falls_with_rows_and_with_the_budget():
    noise = {
        (rows, epsilon): predict(question(rows, epsilon, second_stage="features"), QUICK).noise_sd
        for rows in (200, 2000)
        for epsilon in (0.2, 5.0)
    }
    assert noise[2000, 5.0] < noise[200, 5.0] < noise[200, 0.2]
    assert noise[2000, 5.0] < noise[2000, 0.2] < noise[200, 0.2]


@pytest.mark.parametrize(
    "settings",
    [
        {"learner": "dr", "split": "crossfit"},
        {"neighbours": "add-or-remove-one"},
        {"nuisance": dpcate.KnownPropensity(0.3), "split": "disjoint"},
        {"nuisance": "features", "second_stage": dpcate.Features(bandwidth=0.3)},
        {"second_stage": "kernel", "queries": [[0.2, 0.5], [0.7, 0.1]]},
        {"second_stage": "features", "queries": {"x0": [0.5], "x1": [0.5]}},
    ],
)
def test_every_choice_of_the_estimator_can_be_planned(settings):
    found = predict(question(rows=60, **settings), QUICK)
    numbers = (found.noise_sd, found.noise_width, found.width, found.error, found.uncertainty)
    assert all(math.isfinite(number) and number > 0 for number in numbers)


def test_persons_with_several_rows_cost_as_much_as_they_may():
    """k rows each: the same rows are worth a k-th of the budget."""
    several = dpcate.Schema(
        covariates=SCHEMA.covariates,
        treatment=SCHEMA.treatment,
        outcome=SCHEMA.outcome,
        person="id",
        max_rows_per_person=4,
    )
    alone = question(rows=2000, epsilon=2.0, second_stage="features")
    together = dataclasses.replace(alone, schema=several)
    assert together.persons == 500
    assert predict(together, QUICK).noise_sd > 1.15 * predict(alone, QUICK).noise_sd
