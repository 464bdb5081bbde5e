import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from dpcate.errors import BudgetError, MechanismError
from dpcate.privacy import Accountant, Budget, Mechanisms, Sensitivity, noise_source
from dpcate.privacy.mechanisms import ROUNDING_SLACK

BOUND = Sensitivity(2.0, "clipped-sum")


def mechanisms(random_state=0, epsilon=1.0):
    return Mechanisms(Accountant(Budget(epsilon=epsilon, delta=1e-6)), noise_source(random_state))


@pytest.mark.parametrize("random_state", [None, 0])
def test_guarantee_3_noise_has_the_declared_scale(random_state):
    """Mean and variance of 40,000 draws, each within bounds that fail with probability below 1e-9."""
    draws, mech = 40_000, mechanisms(random_state)
    mu = mech.accountant.budget.mu
    noisy = mech.vector("test", np.full(draws, 5.0), sensitivity=BOUND, mu=mu)
    assert noisy.sd == pytest.approx(2.0 * (1 + ROUNDING_SLACK) / mu)
    z = (noisy.value - 5.0) / noisy.sd
    assert abs(z.mean()) < norm.isf(2e-10) / math.sqrt(draws)
    assert chi2.ppf(2e-10, draws) < z @ z < chi2.isf(2e-10, draws)
    assert mech.private == (random_state is None)


def test_symmetric_release_has_frobenius_noise():
    mech = mechanisms(0)
    matrix = np.arange(36.0).reshape(6, 6)
    matrix = matrix + matrix.T
    diagonal, off = [], []
    for seed in range(400):
        mech = mechanisms(seed)
        noisy = mech.symmetric("test", matrix, sensitivity=BOUND, mu=mech.accountant.budget.mu)
        assert np.array_equal(noisy.value, noisy.value.T)
        z = (noisy.value - matrix) / noisy.sd
        diagonal.append(np.diag(z))
        off.append(z[np.triu_indices(6, 1)])
    assert np.std(diagonal) == pytest.approx(1.0, rel=0.1)
    assert np.std(off) == pytest.approx(math.sqrt(0.5), rel=0.1)


def test_the_charge_comes_first():
    mech = mechanisms()
    mech.vector("all of it", [1.0], sensitivity=BOUND, mu=mech.accountant.budget.mu)
    with pytest.raises(BudgetError):
        mech.vector("more", [1.0], sensitivity=BOUND, mu=0.01)
    assert [charge.name for charge in mech.accountant.charges] == ["all of it"]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_guarantee_4_a_statistic_that_is_not_finite_is_refused_after_the_charge(bad):
    mech = mechanisms()
    with pytest.raises(MechanismError, match="not finite") as refusal:
        mech.vector("test", [1.0, bad], sensitivity=BOUND, mu=0.1)
    assert len(mech.accountant.charges) == 1
    assert str(bad) not in str(refusal.value)


@pytest.mark.parametrize("statistic", [[], 3.0, [[1.0, 2.0]], [[[1.0]]]])
def test_wrong_shapes_are_refused_before_the_charge(statistic):
    mech = mechanisms()
    with pytest.raises(MechanismError, match="vector"):
        mech.vector("test", statistic, sensitivity=BOUND, mu=0.1)
    with pytest.raises(MechanismError, match="square"):
        mech.symmetric("test", np.ones((2, 3)), sensitivity=BOUND, mu=0.1)
    assert mech.accountant.charges == ()


@pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf])
def test_meaningless_parameters_are_refused_before_the_charge(mu):
    mech = mechanisms()
    with pytest.raises(MechanismError, match="positive finite"):
        mech.vector("test", [1.0], sensitivity=BOUND, mu=mu)
    with pytest.raises(MechanismError, match="positive finite"):
        mech.vector("test", [1.0], sensitivity=Sensitivity(0.0, "clipped-sum"), mu=0.1)
    assert mech.accountant.charges == ()
