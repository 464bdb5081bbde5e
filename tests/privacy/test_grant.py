"""Guarantee 6: whatever is charged, the composition of all charges stays within the grant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcate.errors import InputError
from dpcate.privacy import Account, Budget, Declared, Gaussian, Grant, Request
from dpcate.privacy.accounting import delta_of, epsilon_of

DELTA = 1e-6


def request(epsilon, delta=DELTA, gaussian=True, neighbours="replace-one"):
    return Request(budget=Budget(epsilon=epsilon, delta=delta, neighbours=neighbours), gaussian=gaussian)


def spend(account, *requests):
    """Charge what is covered; how many were."""
    for asked in requests:
        event = account.event_for(asked)
        if event is not None:
            account = Account(account.grant, (*account.charges, event))
    return account


def test_one_fit_may_take_the_whole_grant():
    account = Account(Grant.of(epsilon=1.0, delta=DELTA))
    assert account.epsilon_left() == pytest.approx(1.0, abs=1e-3)
    spent = spend(account, request(1.0))
    assert spent.charges == (Gaussian(Budget(epsilon=1.0, delta=DELTA).mu),)
    assert spent.epsilon_left() == 0.0
    assert spent.event_for(request(0.001)) is None


def test_fits_compose_and_do_not_add_up():
    account = spend(Account(Grant.of(epsilon=1.0, delta=DELTA)), *[request(0.1)] * 200)
    assert len(account.charges) > 60
    assert account.epsilon_spent() == pytest.approx(1.0, abs=0.01)


@given(
    granted=st.floats(0.1, 20),
    fits=st.lists(st.tuples(st.floats(0.01, 5), st.floats(1e-12, 1e-3)), max_size=20),
)
def test_gaussian_charges_never_exceed_the_grant(granted, fits):
    account = Account(Grant.of(epsilon=granted, delta=DELTA))
    account = spend(account, *(request(epsilon, delta) for epsilon, delta in fits))
    assert epsilon_of(account.charges, DELTA, "replace-one") <= granted * (1 + 1e-7)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_both_parts_spent_to_the_end_are_within_the_grant(neighbours):
    grant = Grant.of(epsilon=3.0, delta=DELTA, declared=(1.0, 2e-7), neighbours=neighbours)
    asked = [request(0.3, 1e-7, gaussian, neighbours) for gaussian in (True, False)] * 40
    account = spend(Account(grant), *asked, request(0.4, 1e-8, False, neighbours))
    kinds = [type(event) for event in account.charges]
    assert kinds.count(Declared) == 2
    assert kinds.count(Gaussian) > 10
    worst = (Gaussian(grant.mu), grant.declared)
    assert delta_of(worst, grant.budget.epsilon, neighbours) <= DELTA
    assert account.epsilon_spent() <= 3.0


def test_what_is_set_aside_is_taken_as_sums():
    account = Account(Grant.of(epsilon=3.0, delta=DELTA, declared=(1.0, 3e-7)))
    network = request(0.4, 1e-7, gaussian=False)
    account = spend(account, network, network, network)
    assert account.charges == (Declared(0.4, 1e-7), Declared(0.4, 1e-7))
    assert account.declared_left().epsilon == pytest.approx(0.2)
    assert account.event_for(request(0.2, 2e-7, gaussian=False)) is None
    assert account.event_for(request(0.2, 1e-7, gaussian=False)) == Declared(0.2, 1e-7)


def test_without_anything_set_aside_only_gaussian_fits_are_covered():
    account = Account(Grant.of(epsilon=3.0, delta=DELTA))
    assert account.event_for(request(0.01, 1e-9, gaussian=False)) is None
    assert account.event_for(request(0.01, 1e-9)) is not None


def test_a_gaussian_fit_may_take_what_was_set_aside_for_any_fit():
    account = Account(Grant.of(epsilon=1.0, delta=DELTA, declared=(1.0, DELTA)))
    assert account.grant.mu == 0.0
    assert account.epsilon_left() == 0.0
    account = spend(account, request(0.5, 5e-7), request(0.5, 5e-7), request(0.1, 1e-8))
    assert account.charges == (Declared(0.5, 5e-7), Declared(0.5, 5e-7))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must lie above 0"),
        ({"delta": 1.0}, "delta must lie above 0"),
        ({"neighbours": "both"}, "neighbours must be one of"),
        ({"declared": (2.0, 0.0)}, "more than it grants"),
        ({"declared": (0.5, 1e-3)}, "more than it grants"),
        ({"declared": (0.0, 1e-9)}, "needs an epsilon"),
        ({"declared": (math.nan, 0.0)}, "needs an epsilon"),
        ({"declared": (-1.0, 0.0)}, "needs an epsilon"),
        ({"person": ""}, "printable"),
    ],
)
def test_bad_grants(changes, message):
    with pytest.raises(InputError, match=message):
        Grant.of(**{"epsilon": 1.0, "delta": DELTA, **changes})


def test_what_is_left_is_rounded_down_to_what_is_covered():
    account = Account(Grant.of(epsilon=2.0, delta=DELTA))
    for epsilon in (0.7, 0.9, 0.31, 0.05, 1.1):
        account = spend(account, request(epsilon))
        for delta in (1e-8, DELTA, 1e-5):
            left = account.epsilon_left(delta)
            assert account.event_for(request(left, delta)) is not None
            assert account.event_for(request(left * 1.002, delta)) is None
