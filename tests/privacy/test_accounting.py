import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from dpcate.errors import BudgetError, InputError
from dpcate.privacy import (
    Accountant,
    Budget,
    Charge,
    Declared,
    Gaussian,
    SampledGaussian,
    Sensitivity,
    gdp_epsilon,
    gdp_mu,
)
from dpcate.privacy.accounting import cheapest_training, delta_of, epsilon_of

RELATIONS = {
    "add-or-remove-one": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}


def charge(event, part=None):
    return Charge(
        name="test", mechanism="test", event=event, sensitivity=Sensitivity(1.0, "box-sum"), sd=1.0, part=part
    )


def test_gaussians_compose_in_closed_form():
    events = [Gaussian(0.3), Gaussian(0.4)]
    assert epsilon_of(events, 1e-6, "replace-one") == pytest.approx(gdp_epsilon(0.5, 1e-6))
    assert epsilon_of([], 1e-6, "replace-one") == 0.0


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_sampled_gaussians_agree_with_dp_accounting(neighbours):
    accountant = PLDAccountant(RELATIONS[neighbours], value_discretization_interval=1e-5)
    sampled = dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.1))
    accountant.compose(dp_accounting.SelfComposedDpEvent(sampled, 300))
    accountant.compose(dp_accounting.GaussianDpEvent((2.0 if neighbours == "replace-one" else 1.0) / 0.2))
    events = [SampledGaussian(1.1, 0.05, 300), Gaussian(0.2)]
    assert epsilon_of(events, 1e-6, neighbours) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)
    epsilon = accountant.get_epsilon(1e-6)
    assert delta_of(events, epsilon, neighbours) == pytest.approx(1e-6, rel=1e-2)


def test_declared_guarantees_compose_no_worse_than_by_addition():
    events = [Declared(0.4, 1e-7), Gaussian(0.1)]
    total = epsilon_of(events, 1e-6, "replace-one")
    assert 0.4 <= total <= 0.4 + gdp_epsilon(0.1, 9e-7) + 1e-3
    assert epsilon_of([Declared(0.4, 0.0)], 1e-9, "replace-one") == pytest.approx(0.4, abs=2e-4)


def test_overdraft_is_refused_and_leaves_the_account_as_it_was():
    budget = Budget(epsilon=1.0, delta=1e-6)
    accountant = Accountant(budget)
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.6))))
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.4))))
    assert accountant.epsilon_spent() == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(BudgetError, match="does not cover the release 'test'"):
        accountant.charge(charge(Gaussian(1e-3)))
    with pytest.raises(BudgetError, match="does not cover"):
        accountant.charge(charge(SampledGaussian(1.0, 0.01, 10)))
    assert len(accountant.charges) == 2


def test_the_whole_budget_is_reserved_once_and_first():
    budget, calls = Budget(epsilon=1.0, delta=1e-6), []
    accountant = Accountant(budget, reserve=lambda: calls.append(len(accountant.charges)))
    with pytest.raises(BudgetError):
        accountant.charge(charge(Gaussian(2 * budget.mu)))
    assert calls == []
    accountant.charge(charge(Gaussian(budget.mu / 2)))
    accountant.charge(charge(Gaussian(budget.mu / 2)))
    assert calls == [0]


def test_a_reservation_that_fails_leaves_nothing_charged():
    def refuse():
        raise BudgetError("no")

    accountant = Accountant(Budget(epsilon=1.0, delta=1e-6), reserve=refuse)
    for _ in range(2):
        with pytest.raises(BudgetError, match="no"):
            accountant.charge(charge(Gaussian(0.1)))
    assert accountant.charges == ()


def test_what_was_announced_as_gaussian_stays_gaussian():
    accountant = Accountant(Budget(epsilon=1.0, delta=1e-6), gaussian=True)
    for event in (Declared(0.1, 0.0), SampledGaussian(10.0, 0.01, 1)):
        with pytest.raises(BudgetError, match="announced as Gaussian"):
            accountant.charge(charge(event))
    accountant.charge(charge(Gaussian(0.1)))


def test_parts_are_parallel_and_all_rows_touch_every_part():
    budget = Budget(epsilon=1.0, delta=1e-6)
    accountant = Accountant(budget, parts=2)
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.5)), part=0))
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.5)), part=1))
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.5))))
    for part in (0, 1, None):
        with pytest.raises(BudgetError):
            accountant.charge(charge(Gaussian(0.01), part=part))
    with pytest.raises(InputError, match="part"):
        accountant.charge(charge(Gaussian(0.01), part=2))


def test_what_is_set_apart_is_added_and_the_rest_has_what_is_left():
    budget = Budget(epsilon=1.0, delta=1e-6, neighbours="add-or-remove-one")
    accountant = Accountant(budget)
    accountant.charge(charge(Gaussian(gdp_mu(0.1, 1e-7))))
    accountant.set_apart(Declared(0.1, 1e-7))
    training = accountant.training_left(sampling_rate=0.05, steps=100)
    accountant.charge(charge(training))
    assert delta_of([training], 0.9, "add-or-remove-one") <= 9e-7 * (1 + 1e-9)
    assert 0.95 < accountant.epsilon_spent() <= 1.0 + 1e-9
    with pytest.raises(BudgetError):
        accountant.charge(charge(Gaussian(0.1)))
    assert len(accountant.charges) == 2


def test_setting_apart_less_than_was_spent_is_refused():
    accountant = Accountant(Budget(epsilon=1.0, delta=1e-6))
    accountant.charge(charge(Gaussian(0.2)))
    with pytest.raises(BudgetError, match="set apart"):
        accountant.set_apart(Declared(0.1, 1e-7))


@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(0.1, 0.05, 30), (1.0, 0.1, 30), (10.0, 0.1, 30)])
def test_a_coarse_look_does_not_change_the_training(epsilon, rate, steps):
    """Guarantee of `cheapest_training`: it fits by the fine grid, and a thousandth less noise would not."""
    budget, spent = Budget(epsilon=epsilon, delta=1e-5), (Gaussian(0.3 * gdp_mu(epsilon, 1e-5)),)
    found = cheapest_training(budget, sampling_rate=rate, steps=steps, spent=spent)
    less = SampledGaussian(found.noise_multiplier / 1.001, rate, steps)
    assert delta_of([*spent, found], epsilon, "replace-one") <= 1e-5 < delta_of([*spent, less], epsilon, "replace-one")


def test_a_coarser_grid_errs_upwards():
    events = [Gaussian(0.5), SampledGaussian(1.2, 0.05, 200)]
    fine, coarse = (delta_of(events, 2.0, "replace-one", coarsening) for coarsening in (1.0, 8.0))
    assert fine <= coarse < 1.05 * fine


def test_trainings_are_remembered_whatever_the_order_of_what_was_spent():
    accountants = [Accountant(Budget(epsilon=1.0, delta=1e-6)) for _ in range(2)]
    for accountant, mus in zip(accountants, ((0.1, 0.05, 0.02), (0.02, 0.1, 0.05)), strict=True):
        for mu in mus:
            accountant.charge(charge(Gaussian(mu)))
    cheapest_training.cache_clear()
    first, second = (accountant.training_left(sampling_rate=0.1, steps=2) for accountant in accountants)
    assert first == second
    assert cheapest_training.cache_info().misses == 1
    accountants[1].charge(charge(second))


def test_a_charge_on_several_parts_leaves_the_others_alone():
    budget = Budget(epsilon=1.0, delta=1e-6)
    accountant = Accountant(budget, parts=3)
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.6)), part=(0, 1)))
    accountant.charge(charge(Gaussian(budget.mu), part=2))
    accountant.charge(charge(Gaussian(budget.mu * math.sqrt(0.4)), part=1))
    assert accountant.gaussian_left(0) == pytest.approx(budget.mu * math.sqrt(0.4))
    assert accountant.gaussian_left((0, 1)) == pytest.approx(0.0, abs=1e-6)
    for part in ((0, 1), (1,), 2, None):
        with pytest.raises(BudgetError):
            accountant.charge(charge(Gaussian(0.01), part=part))
    for part in ((0, 3), ()):
        with pytest.raises(InputError, match="part"):
            accountant.charge(charge(Gaussian(0.01), part=part))
