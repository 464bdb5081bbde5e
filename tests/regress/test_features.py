import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpcate import Features, KnownNuisances, Number, Outcome, PrivateCATE, Schema, datasets
from dpcate.datasets.synthetic import true_effect
from dpcate.errors import InputError
from dpcate.models.fourier import fourier_features
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.privacy.mechanisms import ROUNDING_SLACK
from dpcate.regress.features import budget_shares
from dpcate.regress.huber import huber_minimiser
from dpcate.regress.problem import Problem

LIMITS = {0.1: 1.35, 0.5: 1.15, 1.0: 0.95, 5.0: 0.60, 10.0: 0.52}


def oracle(seed, n=1350):
    """Dataset 1 with its true nuisances: rows to fit on, and 300 points to judge by."""
    data = datasets.synthetic(1, n + 300, seed)
    rng = np.random.default_rng(seed)
    rng.uniform(size=(n + 300, 2))
    beta, gamma = rng.uniform(0, 0.3, 2), rng.uniform(0, 1, 2)

    def x(columns):
        return np.column_stack([columns["x0"], columns["x1"]])

    nuisance = KnownNuisances(
        propensity=lambda columns: (1 + x(columns) @ beta) / 2,
        outcome=lambda columns: x(columns) @ gamma + (1 + x(columns) @ beta) / 2 * true_effect(1, x(columns)),
    )
    assert np.allclose(nuisance.outcome({"x0": data.X[:, 0], "x1": data.X[:, 1]}), data.outcome)
    return data, nuisance


@pytest.mark.parametrize("epsilon", LIMITS)
def test_error_with_known_nuisances_on_1350_rows(epsilon):
    errors = []
    for seed in range(20):
        data, nuisance = oracle(1000 + seed)
        estimator = PrivateCATE(
            data.schema, epsilon=epsilon, delta=1e-5, second_stage="features", nuisance=nuisance, random_state=seed
        ).fit(data.Y[:1350], data.T[:1350], X=data.X[:1350])
        assert {charge.name.split(":")[0] for charge in estimator.release_.charges} == {"effect", "average effect"}
        errors.append(np.sqrt(np.mean((estimator.effect(data.X[1350:]) - data.tau[1350:]) ** 2)))
    assert np.mean(errors) <= LIMITS[epsilon]


def problem(n=300, width=2, seed=0, **changes):
    rng = np.random.default_rng(seed)
    x, w = rng.random((n, width)), rng.choice([-0.5, 0.5], size=n)
    plain = Problem(
        x=x,
        rho=w * w,
        rho_phi=w * (w * (2 + np.sin(4 * x[:, 0])) + rng.uniform(-1, 1, n)),
        reference=rng.random((256, width)),
        n=n,
        span=10.0,
        curvature=0.25,
        multiplier=0.5,
        two_valued=False,
        neighbours="replace-one",
        rows_per_person=1,
        part=None,
    )
    return dataclasses.replace(plain, **changes)


def mechanisms(seed, epsilon=1.0):
    return Mechanisms(Accountant(Budget(epsilon=epsilon, delta=1e-6)), noise_source(seed))


def fit(problem, seed=0, epsilon=1.0, settings=None):
    mech = mechanisms(seed, epsilon)
    model = (settings or Features()).fit(problem, mech, mech.accountant.budget.mu, "test")
    return model, mech.accountant


def test_the_whole_budget_is_spent_and_no_more():
    _, accountant = fit(problem())
    assert accountant.epsilon_spent() == pytest.approx(1.0, rel=1e-6)


def test_the_released_coefficients_are_the_minimiser_plus_the_declared_noise():
    rows = problem()
    settings = Features(penalty=0.05, threshold=0.08)
    model, accountant = fit(rows, settings=settings)
    coefficients = next(charge for charge in accountant.charges if charge.name == "test: coefficients")
    bound = 0.08 * rows.score_limit
    expected = 2 * bound / (0.05 * rows.n) / coefficients.event.mu
    assert model.coefficient_sd == pytest.approx(expected, rel=2e-4)
    phi = fourier_features(rows.x, np.asarray(model.frequencies))
    theta = huber_minimiser(
        phi, rows.rho, rows.scores(model.offset), n=rows.n, score_bound=bound, penalty=0.05, tolerance=1e-12
    )
    z = (np.asarray(model.coefficients) - theta) / model.coefficient_sd
    assert chi2.ppf(1e-7, z.size) < z @ z < chi2.isf(1e-7, z.size)


def test_thirty_columns_at_bandwidth_one_get_the_corrected_noise():
    """The paper's printed exponent would give less than a hundred-thousandth of it."""
    rows = problem(n=1350, width=30)
    model, accountant = fit(rows, settings=Features(bandwidth=1.0, penalty=0.02, threshold=0.05), epsilon=1.0)
    charge = next(charge for charge in accountant.charges if charge.name == "test: coefficients")
    slope = 2 * 0.05 * rows.score_limit  # L of the paper: the loss has slope at most 2B
    corrected = slope / (0.02 * rows.n) / charge.event.mu * (1 + ROUNDING_SLACK)
    assert model.coefficient_sd == pytest.approx(corrected, rel=2e-4)

    q, h, epsilon, delta = 30, 1.0, 1.0, 1e-6
    diagonal = (math.sqrt(2 * math.pi) * h) ** -q  # K(x, x) of the paper's kernel
    penalty_of_paper = 0.02 * diagonal  # λ‖g‖²_K is the same function of g
    printed_r = 4 * slope * math.sqrt(2 * math.log(2 / delta)) * diagonal / (penalty_of_paper * rows.n * epsilon)
    printed_noise_at_a_point = printed_r * math.sqrt(diagonal)
    assert corrected > 1e5 * printed_noise_at_a_point


def test_an_effect_without_heterogeneity_comes_out_flat_at_its_level():
    rng = np.random.default_rng(5)
    x, w = rng.random((20_000, 2)), rng.choice([-0.5, 0.5], size=20_000)
    flat = problem(x=x, rho=w * w, rho_phi=w * (w * 3.0 + rng.uniform(-1, 1, len(x))), n=20_000)
    model, _ = fit(flat, epsilon=5.0)
    assert np.abs(model.value(flat.reference) - 3.0).max() < 0.5


def test_a_two_valued_outcome_is_not_clipped():
    """A rare event, cut from 10% to 4%: a clip at the typical residual would miss the change."""
    rng = np.random.default_rng(6)
    n = 200_000
    x, treated = rng.random((n, 1)), rng.random(n) < 0.5
    event = (rng.random(n) < np.where(treated, 0.04, 0.10)).astype(float)
    w = treated - 0.5
    rare = problem(x=x, rho=w * w, rho_phi=w * (event - 0.07), reference=rng.random((64, 1)), n=n, span=1.0,
                   two_valued=True)  # fmt: skip
    model, _ = fit(rare, epsilon=5.0)
    assert np.abs(model.value(rare.reference) + 0.06).max() < 0.04


@pytest.mark.parametrize(("signal", "offset"), [(1.0, 0.5), (100.0, 0.2), (1e6, 0.1)])
def test_shares_follow_the_public_rule(signal, offset):
    shares = budget_shares(signal, interval=True)
    assert shares["offset"] == offset
    assert sum(shares.values()) == pytest.approx(1.0)
    assert "interval" not in budget_shares(signal, interval=False)


@pytest.mark.parametrize(
    "settings", [{"pairs": 0}, {"pairs": 2.5}, {"bandwidth": -1.0}, {"penalty": math.nan}, {"threshold": 0}]
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        Features(**settings)


def test_settings_reach_the_release():
    schema = Schema(covariates={"x": Number(0, 1)}, treatment="t", outcome=Outcome("y", low=0, high=1))
    rng = np.random.default_rng(0)
    estimator = PrivateCATE(schema, epsilon=1.0, delta=1e-6, second_stage=Features(pairs=16, penalty=0.3))
    release = estimator.fit(rng.random(50), rng.integers(0, 2, 50), X=rng.random((50, 1))).release_
    assert len(release.model.coefficients) == 32
    assert release.model.penalty == 0.3
