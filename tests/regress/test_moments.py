import math

import numpy as np
import pytest
from scipy.stats import norm

import dpcate
from dpcate import Moments, PrivateCATE
from dpcate.errors import InputError
from dpcate.pipeline import Pipeline
from dpcate.privacy import Accountant, Budget, Mechanisms, gdp_mu, noise_source
from dpcate.regress import ColumnRows, private_columns
from dpcate.regress.moments import rules

DATA = dpcate.datasets.synthetic(1, 3000, seed=21)


def fitted(epsilon, seed=0, **changes):
    return PrivateCATE(DATA.schema, epsilon=epsilon, delta=1e-5, random_state=seed, **changes).fit(
        DATA.Y, DATA.T, X=DATA.X
    )


def error(epsilon, **changes):
    runs = [fitted(epsilon, seed, **changes).effect(DATA.X) - DATA.tau for seed in range(6)]
    return np.mean([np.sqrt(np.mean(run**2)) for run in runs])


def test_it_is_far_ahead_of_output_perturbation():
    assert error(0.5) < 0.3
    assert error(1.0) < 0.2
    assert error(10.0) < 0.1
    assert error(1.0) < 0.5 * error(1.0, second_stage="features", nuisance="features")


@pytest.mark.parametrize("split", ["crossfit", "disjoint", "none"])
@pytest.mark.parametrize("learner", ["r", "dr"])
def test_every_split_and_learner(split, learner):
    release = fitted(5.0, split=split, learner=learner).release_
    assert np.sqrt(np.mean((release.effect(DATA.X) - DATA.tau) ** 2)) < 0.6
    assert release.proof == "moments-release"


def column_moments(x, epsilon):
    mechanisms = Mechanisms(Accountant(Budget(epsilon=epsilon, delta=1e-5)), noise_source(0))
    rows = ColumnRows(x=x, present=np.ones(len(x)), n=len(x), neighbours="replace-one", rows_per_person=1)
    return private_columns(rows, mechanisms, mechanisms.accountant.budget.mu)


def test_column_moments_approach_the_truth_with_budget():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.random(5000), rng.beta(2, 6, 5000), rng.integers(0, 2, 5000)])
    close = column_moments(x, 50.0)
    assert np.abs(close.means - x.mean(0)).max() < 0.01
    assert np.abs(close.sds - x.std(0)).max() < 0.02
    nothing = column_moments(x, 0.001)
    assert np.abs(nothing.means - 0.5).max() < 0.25
    assert np.isfinite(nothing.sds).all()


@pytest.mark.parametrize("settings", [{"rounds": 0}, {"rounds": 21}, {"rounds": 2.5}, {"rounds": True}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError, match="whole number"):
        Moments(**settings)


def drawn(q, effect, n=6000, seed=3, correlated=0.0):
    """Uniform columns, pairwise correlated if asked for; a confounded trial with this effect."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    x = norm.cdf(np.sqrt(1 - correlated) * rng.normal(size=(n, q)) + np.sqrt(correlated) * common)
    treated = rng.random(n) < 0.3 + 0.4 * x[:, 0]
    y = effect(x) * treated + 2 * x[:, 0] - x[:, 1] + rng.normal(size=n) * 0.5
    schema = dpcate.Schema(
        covariates={f"x{j}": dpcate.Number(0, 1) for j in range(q)}, treatment="t", outcome=dpcate.Outcome("y", -6, 9)
    )
    model = PrivateCATE(schema, epsilon=5.0, delta=1e-5, random_state=seed).fit(y, treated.astype(float), X=x)
    return x, effect(x), model


def test_an_interaction_among_many_columns_is_found():
    x, tau, model = drawn(12, lambda x: 1 + 2 * x[:, 3] + 2 * x[:, 7] + 6 * (x[:, 3] - 0.5) * (x[:, 7] - 0.5))
    assert [(3, 1), (7, 1)] in [sorted(term) for term in model.release_.model.terms]
    additive = np.column_stack([np.ones(len(x)), x])
    best_without = tau - additive @ np.linalg.lstsq(additive, tau, rcond=None)[0]
    assert np.std(model.effect(x) - tau) < 0.5 * np.std(best_without)


@pytest.mark.parametrize("seed", range(4))
def test_correlated_columns_do_not_mislead(seed):
    x, tau, model = drawn(8, lambda x: 1 + 3 * x[:, 2] - 3 * x[:, 5], seed=seed, correlated=0.7)
    assert model.release_.model.correlated
    assert np.sqrt(np.mean((model.effect(x) - tau) ** 2)) < 0.5 * tau.std()


def test_intervals_cover_a_step():
    x, tau, model = drawn(3, lambda x: 1.0 + 2.0 * (x[:, 1] > 0.6))
    low, high = model.effect_interval(x)
    assert 0.8 < np.mean((low <= tau) & (tau <= high)) < 0.99
    assert np.mean(high - low) < 8 * np.sqrt(np.mean((model.effect(x) - tau) ** 2))


def test_without_heterogeneity_none_is_claimed():
    x, tau, model = drawn(10, lambda x: np.full(len(x), 1.5))
    assert np.std(model.effect(x)) < 0.1
    assert np.sqrt(np.mean((model.effect(x) - tau) ** 2)) < 0.15


def rounds_of(**settings):
    """The names of all rounds of scores, and whether a constant was fitted apart."""
    names = [charge.name for charge in fitted(1.0, **settings).release_.charges]
    scores = [name.removesuffix(", scores") for name in names if name.endswith(", scores") and "round" in name]
    return [name for name in scores if "propensity" not in name], any("refined constant" in name for name in names)


def test_outcome_and_effect_are_one_regression_where_a_second_stage_would_solve_the_same_equations():
    rounds, apart = rounds_of()
    early = [f"nuisances: round {number}" for number in (1, 2, 3)]
    assert rounds == early + [f"effect and outcome: round {number}" for number in range(1, 6)]
    assert not apart
    assert rounds_of(second_stage=Moments(rounds=2))[0] == [*early, *rounds[3:5]]


def test_a_first_stage_of_the_same_rows_is_not_lost():
    """Another learner goes on from what the first stage learned of the effect, without a constant of its own."""
    rounds, apart = rounds_of(learner="dr")
    assert [name for name in rounds if name.startswith("effect")] == [f"effect: round {k}" for k in (1, 2, 3, 4)]
    assert not apart
    assert rounds_of(split="crossfit")[1]


@pytest.mark.parametrize("split", ["crossfit", "disjoint", "none"])
def test_every_split_tells_the_second_stage_how_large_outcomes_are(split, monkeypatch):
    """How much of the outcome is explained widens intervals; what was learned of the effect is of its own rows only."""
    told = []
    fit = Moments.fit
    monkeypatch.setattr(Moments, "fit", lambda self, problem, *rest: told.append(problem) or fit(self, problem, *rest))
    fitted(10.0, split=split)
    assert told[0].outcome_scale == pytest.approx(DATA.Y.std(), rel=0.3)
    assert (told[0].start is not None) == (split == "none")
    fitted(10.0, split=split, nuisance=dpcate.KnownNuisances(propensity=0.5, outcome=lambda x: x["x0"]))
    assert told[1].outcome_scale is None


@pytest.mark.parametrize(("n", "epsilon", "late"), [(3000, 0.1, 4), (30000, 0.1, 4), (3000, 0.5, 5), (4000, 10.0, 5)])
def test_fewer_looks_where_privacy_noise_drowns_all_else(n, epsilon, late):
    assert rules.late_rounds(n, gdp_mu(epsilon, 1e-5)) == late


@pytest.mark.parametrize(
    "settings", [{}, {"neighbours": "add-or-remove-one"}, {"nuisance": dpcate.KnownPropensity(0.5)}]
)
def test_one_regression_spends_all_of_the_budget(settings):
    spent = [charge.spent.mu for charge in fitted(1.0, **settings).release_.charges]
    assert math.hypot(*spent) == pytest.approx(gdp_mu(1.0, 1e-5), rel=1e-9)


def confounded(seed, q=30, n=4000):
    """How far the effect, which is 1 for all, is missed where outcome and treatment follow the same curves."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, q))
    curves = (8 * np.abs(x[:, :4] - 0.5) - 2).sum(axis=1) / 2
    treated = (rng.random(n) < 1 / (1 + np.exp(-0.75 * curves))).astype(float)
    y = np.clip(1.5 * curves + treated + rng.normal(size=n), -20, 20)
    columns = {f"x{j}": dpcate.Number(0, 1) for j in range(q)}
    schema = dpcate.Schema(covariates=columns, treatment="t", outcome=dpcate.Outcome("y", -20, 20))
    model = PrivateCATE(schema, epsilon=2.0, delta=1e-5, random_state=seed).fit(y, treated, X=x)
    return np.sqrt(np.mean((model.effect(x) - 1) ** 2))


def test_fitting_the_outcome_to_the_end_keeps_its_curves_out_of_the_effect(monkeypatch):
    one_regression = np.mean([confounded(seed) for seed in range(32)])
    monkeypatch.setattr(Pipeline, "_one_regression", False)
    assert one_regression < 0.9 * np.mean([confounded(seed) for seed in range(32)])
