import numpy as np
import pytest

from dpcate import Number, Outcome, Schema
from dpcate.data import read_rows
from dpcate.errors import InputError
from dpcate.nuisance import FittedNuisances, NetworkNuisance
from dpcate.nuisance.targets import TrainingRows
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source

SCHEMA = Schema(
    covariates={"a": Number(0, 1), "b": Number(0, 1)}, treatment="t", outcome=Outcome("y", low=-4.0, high=6.0)
)
NEEDS = {"r": ("outcome", "propensity"), "dr": ("outcome_control", "outcome_treated", "propensity")}


def truth(x):
    """E[Y|x, 0], the effect and the propensity: none of the paper's."""
    return 1 + np.cos(3 * x[:, 0]), 1.5 * x[:, 1], 0.3 + 0.4 * x[:, 0]


def fit(needs, epsilon, neighbours="replace-one", n=3000, settings=None):
    rng = np.random.default_rng(5)
    x = rng.random((n, 2))
    control, effect, propensity = truth(x)
    t = (rng.random(n) < propensity).astype(float)
    rows = read_rows(SCHEMA, control + effect * t + rng.uniform(-0.5, 0.5, n), t, x)
    training = TrainingRows(
        schema=SCHEMA, rows=rows, chosen=np.arange(n), n=float(n), neighbours=neighbours, part=None
    )  # fmt: skip
    budget = Budget(epsilon=epsilon, delta=1e-5, neighbours=neighbours)
    mechanisms = Mechanisms(Accountant(budget), noise_source(0))
    predictors = (settings or NetworkNuisance()).fit(training, needs, mechanisms, budget.mu).predictors
    return FittedNuisances(SCHEMA, 0.05, predictors), mechanisms.accountant


@pytest.mark.parametrize("learner", NEEDS)
def test_networks_learn_what_each_learner_needs(learner):
    nuisances, accountant = fit(NEEDS[learner], epsilon=8.0)
    x = np.random.default_rng(6).random((500, 2))
    control, effect, propensity = truth(x)
    assert np.sqrt(np.mean((nuisances.propensity(x) - propensity) ** 2)) < 0.04
    if learner == "r":
        assert np.sqrt(np.mean((nuisances.outcome(x) - control - propensity * effect) ** 2)) < 0.35
    else:
        low, high = nuisances.outcome_by_arm(x)
        assert np.sqrt(np.mean((low - control) ** 2)) < 0.45
        assert np.sqrt(np.mean((high - control - effect) ** 2)) < 0.45
    assert [charge.name for charge in accountant.charges] == [f"{target}: training" for target in NEEDS[learner]]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_the_nuisances_share_the_stage_jointly(neighbours):
    settings = NetworkNuisance(hidden=(8,), epochs=5)
    _, accountant = fit(NEEDS["dr"], 1.0, neighbours, n=500, settings=settings)
    assert 0.98 < accountant.epsilon_spent() <= 1.0
    assert len({charge.event for charge in accountant.charges}) == 1


def test_nothing_needed_is_nothing_spent():
    _, accountant = fit((), 1.0, n=50)
    assert accountant.charges == ()
    assert NetworkNuisance().paid(NEEDS["r"]) == NEEDS["r"]


def test_bad_settings_are_refused():
    with pytest.raises(InputError):
        NetworkNuisance(hidden=(-1,))


def test_a_persons_rows_are_told_apart_from_others():
    schema = Schema(
        covariates={"a": Number(0, 1)}, treatment="t", outcome=Outcome("y", low=0, high=1), person="p",
        max_rows_per_person=2,
    )  # fmt: skip
    table = {"a": [0.1, 0.2, 0.3, 0.4], "t": [0, 1, 0, 1], "y": [0.0, 1.0, 0.5, 0.5], "p": ["u", "v", "u", "w"]}
    rows = read_rows(schema, table=table)
    training = TrainingRows(
        schema=schema, rows=rows, chosen=np.array([1, 2, 3]), n=3.0, neighbours="replace-one", part=None
    )  # fmt: skip
    assert len(set(training.problem("outcome").person)) == 3
    training = TrainingRows(
        schema=schema, rows=rows, chosen=np.arange(4), n=3.0, neighbours="replace-one", part=None
    )  # fmt: skip
    assert training.problem("propensity").person.tolist() == [0, 1, 0, 2]
