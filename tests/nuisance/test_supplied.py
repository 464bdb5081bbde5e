import math
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import dpcate
from dpcate import Private, PrivateCATE, Public, SuppliedNuisances
from dpcate.errors import BudgetError, InputError

DATA = dpcate.datasets.synthetic(1, 600, seed=2)
PUBLIC = dpcate.datasets.synthetic(1, 600, seed=2)


def public_models():
    """Models that were trained on another, public table."""
    return {
        "propensity": Public(LogisticRegression().fit(PUBLIC.X, PUBLIC.T)),
        "outcome": Public(Ridge().fit(PUBLIC.X, PUBLIC.Y)),
        "outcome_control": Public(Ridge().fit(PUBLIC.X, PUBLIC.Y)),
        "outcome_treated": Public(Ridge().fit(PUBLIC.X, PUBLIC.Y)),
    }


def private(model, epsilon=0.2, neighbours="add-or-remove-one"):
    return Private(model=model, epsilon=epsilon, delta=1e-8, neighbours=neighbours)


def fitted(nuisance, **changes):
    settings = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0, **changes}
    return PrivateCATE(DATA.schema, nuisance=nuisance, **settings).fit(DATA.Y, DATA.T, X=DATA.X)


@pytest.mark.parametrize("learner", ["r", "dr"])
def test_public_models_spend_nothing(learner):
    release = fitted(SuppliedNuisances(**public_models()), learner=learner).release_
    assert all(charge.name.startswith(("effect", "columns", "average effect")) for charge in release.charges)


@pytest.mark.parametrize("split", ["crossfit", "disjoint", "none"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_private_models_are_charged_what_they_declare(split, neighbours):
    models = {**public_models(), "outcome": private(Ridge())}
    release = fitted(SuppliedNuisances(**models), split=split, neighbours=neighbours).release_
    declared = [charge.spent for charge in release.charges if charge.mechanism == "declared by its maker"]
    assert len(declared) == (2 if split == "crossfit" else 1)
    twice = neighbours == "replace-one"
    assert declared[0].epsilon == pytest.approx(0.4 if twice else 0.2)
    assert declared[0].delta == pytest.approx(1e-8 * (1 + math.exp(0.2)) if twice else 1e-8)
    assert np.isfinite(release.effect(DATA.X)).all()


def test_a_model_that_declares_nothing_is_refused():
    with pytest.raises(InputError, match="declares no privacy"):
        SuppliedNuisances(**{**public_models(), "outcome": Ridge()})


def test_a_model_that_costs_more_than_the_budget_is_refused():
    with pytest.raises(BudgetError, match="does not cover"):
        fitted(SuppliedNuisances(**{**public_models(), "outcome": private(Ridge(), epsilon=5.0)}))


def test_models_of_one_arm_need_a_guarantee_under_add_or_remove():
    arm = private(Ridge(), neighbours="replace-one")
    with pytest.raises(InputError, match="add-or-remove-one"):
        fitted(SuppliedNuisances(**{**public_models(), "outcome_control": arm}), learner="dr")


def test_missing_models_and_methods_are_refused():
    with pytest.raises(InputError, match="needs SuppliedNuisances to give outcome"):
        fitted(SuppliedNuisances(propensity=public_models()["propensity"]))
    with pytest.raises(InputError, match="needs fit"):
        private(object())
    with pytest.raises(InputError, match="epsilon above 0"):
        private(Ridge(), epsilon=0.0)


def test_the_given_model_is_not_touched():
    model = Ridge()
    fitted(SuppliedNuisances(**{**public_models(), "outcome": private(model)}))
    assert not hasattr(model, "coef_")


def test_a_model_that_fails_on_its_rows_does_not_decide_whether_a_release_appears():
    class Fragile(Ridge):
        def fit(self, X, y):
            raise ValueError(f"SENTINEL {y[0]}")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = fitted(SuppliedNuisances(**{**public_models(), "outcome": private(Fragile())})).release_
    assert np.isfinite(release.effect(DATA.X)).all()
    messages = [str(warning.message) for warning in caught]
    assert any("constant took its place" in message for message in messages)
    assert not any("SENTINEL" in message for message in messages)
