"""What intervals add for noise and for columns half chosen, and what squares of columns are expected to be."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpcate.models.basis import Basis
from dpcate.regress.columns import LARGEST_SQUARE, cut_square
from dpcate.regress.moments.belief import Belief
from dpcate.regress.moments.stage import NOISY_TERMS, SELECTION, TERMS, _missing_products, _noisy, _widened


@pytest.mark.parametrize("variance", [1e-3, 0.3, 1.0, 4.0, 60.0])
def test_cut_squares_are_what_integration_says(variance):
    edge, sd = np.sqrt(LARGEST_SQUARE), np.sqrt(variance)
    within = quad(lambda z: z**2 * norm.pdf(z, scale=sd), -edge, edge, points=[-sd, 0.0, sd], limit=200)[0]
    assert cut_square(np.array([variance]))[0] == pytest.approx(within + LARGEST_SQUARE * 2 * norm.sf(edge, scale=sd))


def widened(means, variances, noisy):
    return _widened(Belief(np.array([9.0, *means]), np.array([9.0, *variances]), np.ones((1, 1, 1)), None), noisy)


def test_selection_is_largest_where_half_is_known():
    def factor(mean):
        return widened([mean], [1.0], np.zeros(2))

    assert factor(1.0) == pytest.approx(TERMS + SELECTION / 4)
    assert factor(0.0) == TERMS
    assert factor(10.0) < factor(3.0) < factor(1.0)


def test_noise_widens_what_was_found():
    means, variances = [3e6, 4e6], [1.0, 3.0]
    assert widened(means, variances, np.array([0.0, 1.0, 1.0])) == pytest.approx(TERMS + NOISY_TERMS)
    assert widened(means, variances, np.array([1.0, 1.0, 0.0])) == pytest.approx(TERMS + NOISY_TERMS / 4)
    assert widened([0.0, 0.0], variances, np.ones(3)) == TERMS


def test_noise_is_what_rows_alone_would_not_leave():
    assert _noisy(np.array([0.5, 1.0, 4.0]), 1.0).tolist() == [0.0, 0.0, 0.75]


def test_missing_products_are_those_of_pairs_that_the_basis_lacks():
    basis = Basis.additive(np.full(3, 0.5), np.full(3, 0.29), 2, 2).grown([0, 1], [])
    mean = np.random.default_rng(0).normal(size=len(basis.terms))
    energy = [
        sum(m**2 for term, m in zip(basis.terms, mean, strict=True) if [j for j, _ in term] == [c]) for c in range(3)
    ]
    expected = (energy[0] * energy[2] + energy[1] * energy[2]) / sum(energy)
    assert _missing_products(basis, mean) == pytest.approx(expected)


def test_one_column_has_no_products():
    basis = Basis.additive(np.full(2, 0.5), np.full(2, 0.29), 2, 2)
    assert _missing_products(basis, np.array([5.0, 1.0, 2.0, 0.0, 0.0])) == pytest.approx(0.0)
    assert _missing_products(basis, np.zeros(5)) == 0.0
