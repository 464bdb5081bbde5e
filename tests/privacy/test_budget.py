import math

import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dpcate.errors import InputError
from dpcate.privacy.budget import Budget, Shares, gdp_delta, gdp_epsilon, gdp_mu

EPSILONS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0)
DELTAS = (1e-9, 1e-5, 1e-3)
RELATIONS = {  # dp-accounting counts a replaced row as twice the sensitivity of an added one
    "add-or-remove-one": (NeighboringRelation.ADD_OR_REMOVE_ONE, 1.0),
    "replace-one": (NeighboringRelation.REPLACE_ONE, 2.0),
}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_calibration_agrees_with_privacy_loss_distributions(epsilon, delta, neighbours):
    relation, factor = RELATIONS[neighbours]
    mu = Budget(epsilon=epsilon, delta=delta, neighbours=neighbours).mu
    distribution = pld.from_gaussian_mechanism(
        factor / mu, value_discretization_interval=min(1e-3, 1e-3 * epsilon), neighboring_relation=relation
    )
    assert distribution.get_epsilon_for_delta(delta) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("count", [1, 2, 10, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (10.0, 1e-5)])
def test_composition_agrees_with_convolved_privacy_loss_distributions(epsilon, delta, count, neighbours):
    relation, factor = RELATIONS[neighbours]
    mu_each = gdp_mu(epsilon, delta) / math.sqrt(count)
    one = pld.from_gaussian_mechanism(
        factor / mu_each, value_discretization_interval=2e-3 * epsilon / count, neighboring_relation=relation
    )
    assert one.self_compose(count).get_epsilon_for_delta(delta) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "multiplier"), [(0.1, 30.75), (0.5, 7.03), (1, 3.73), (5, 0.892), (10, 0.500)])
def test_noise_per_unit_sensitivity_at_delta_1e_5(epsilon, multiplier):
    assert 1 / gdp_mu(epsilon, 1e-5) == pytest.approx(multiplier, rel=2e-3)


@given(st.floats(0.01, 60), st.floats(1e-9, 1e-2))
def test_mu_and_epsilon_are_inverse(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert gdp_delta(mu, epsilon) <= delta
    assert gdp_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    assert gdp_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-6)


def test_delta_formula_against_scipy():
    mu, epsilon = 1.3, 0.7
    expected = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert gdp_delta(mu, epsilon) == pytest.approx(expected, rel=1e-12)


def test_textbook_calibrations_are_not_private_for_large_epsilon():
    """sqrt(2 ln(1.25/δ))/ε and the paper's sqrt(2 ln(2/δ))/ε spend more than they claim at ε = 10."""
    for constant in (1.25, 2.0):
        noise = math.sqrt(2 * math.log(constant / 1e-5)) / 10
        assert gdp_delta(1 / noise, 10) > 1e-5


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 101, "1", True, None])
def test_bad_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon must"):
        Budget(epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("delta", [0, 1, 1.5, -1e-6, math.nan, math.inf, "x", None])
def test_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta must"):
        Budget(epsilon=1.0, delta=delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-15), (1e-14, 1e-100)])
def test_a_budget_that_buys_nothing_is_refused(epsilon, delta):
    with pytest.raises(InputError, match="both so small"):
        Budget(epsilon=epsilon, delta=delta)


def test_unknown_neighbours_are_refused():
    with pytest.raises(InputError, match="replace-one, add-or-remove-one"):
        Budget(epsilon=1.0, delta=1e-6, neighbours="swap")


def test_shares_must_sum_to_one():
    shares = Shares({"a": 0.25, "b": 0.75})
    assert shares.mu("a", 2.0) == pytest.approx(1.0)
    assert math.hypot(*(shares.mu(name, 2.0) for name in shares)) == pytest.approx(2.0)
    for wrong in ({"a": 0.5}, {"a": 0.5, "b": 0.6}, {"a": 1.5, "b": -0.5}, {"a": math.nan, "b": 1.0}, {}):
        with pytest.raises(InputError, match="share"):
            Shares(wrong)
