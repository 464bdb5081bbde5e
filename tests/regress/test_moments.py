import numpy as np
import pytest
from scipy.optimize import minimize

import dpcate
from dpcate import Moments, PrivateCATE
from dpcate.errors import InputError
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.regress import ColumnRows, private_columns
from dpcate.regress.moments import _reweighed, _water_filled

DATA = dpcate.datasets.synthetic(1, 3000, seed=21)


def fitted(epsilon, seed=0, **changes):
    settings = {"second_stage": "moments", "nuisance": "moments", "split": "none", **changes}
    return PrivateCATE(DATA.schema, epsilon=epsilon, delta=1e-5, random_state=seed, **settings).fit(
        DATA.Y, DATA.T, X=DATA.X
    )


def error(epsilon, **changes):
    runs = [fitted(epsilon, seed, **changes).effect(DATA.X) - DATA.tau for seed in range(6)]
    return np.mean([np.sqrt(np.mean(run**2)) for run in runs])


def test_it_is_far_ahead_of_output_perturbation():
    assert error(0.5) < 0.4
    assert error(1.0) < 0.25
    assert error(10.0) < 0.12
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


def test_water_filling_is_the_minimum():
    prior, capacity = np.array([1.0, 0.3, 0.05, 0.2]), 40.0

    def left(w):
        return float((1 / (1 / prior + capacity * w)).sum())

    filled = _water_filled(prior, capacity)
    assert filled.sum() == pytest.approx(1.0)
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(left, np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=constraint, tol=1e-12)
    assert left(filled) <= best.fun + 1e-9


def test_evidence_moves_the_odds_of_its_column_only():
    matters = _reweighed(np.array([0.2, 0.5]), np.array([0.0, 1.0, 2.0]), np.array([-1, 0, 0]))
    assert matters[0] == pytest.approx(0.25 * np.exp(3) / (1 + 0.25 * np.exp(3)))
    assert matters[1] == pytest.approx(0.5)


@pytest.mark.parametrize("settings", [{"degree": 0}, {"rounds": 21}, {"rounds": 2.5}, {"degree": True}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError, match="whole number"):
        Moments(**settings)


@pytest.mark.parametrize("seed", range(40))
def test_no_divergence_on_random_configurations(seed):
    """Skewed, binary, constant and duplicated columns, a rare arm, tiny and large budgets."""
    rng = np.random.default_rng(seed)
    n, q = int(np.exp(rng.uniform(np.log(50), np.log(5000)))), int(np.exp(rng.uniform(0, np.log(60))))
    kinds = rng.integers(0, 5, q)
    draws = [rng.random((n, q)), rng.beta(0.3, 6, (n, q)), rng.integers(0, 2, (n, q)), np.zeros((n, q))]
    x = np.choose(np.minimum(kinds, 3), draws)
    x[:, kinds == 4] = x[:, :1]
    treated = rng.random(n) < rng.choice([0.01, 0.5, 0.97])
    y = rng.choice([1.0, 30.0]) * rng.standard_t(2, n) + 3 * treated * x[:, 0]
    schema = dpcate.Schema(
        covariates={f"x{j}": dpcate.Number(0, 1) for j in range(q)}, treatment="t", outcome=dpcate.Outcome("y", -5, 5)
    )
    model = PrivateCATE(
        schema, epsilon=float(np.exp(rng.uniform(np.log(0.01), np.log(50)))), delta=1e-5, second_stage="moments",
        nuisance="moments", split=str(rng.choice(["crossfit", "disjoint", "none"])), random_state=seed,
    ).fit(y, treated, X=x)  # fmt: skip
    points = rng.random((50, q))
    assert np.isfinite(model.effect(points)).all()
    assert np.abs(model.effect(points)).max() <= 10
    low, high = model.effect_interval(points)
    assert (low <= high).all()
