import math

import msgspec
import numpy as np
import pytest
from scipy.special import eval_legendre

from dpcate.errors import ReleaseError
from dpcate.models import MomentsModel
from dpcate.models.basis import Basis, column_polynomials

rng = np.random.default_rng(0)


def test_a_uniform_column_gets_legendre_polynomials():
    x = np.linspace(0, 1, 50)
    values = Basis.additive(np.array([0.5]), np.array([math.sqrt(1 / 12)]), 4, 4).at(x[:, None])
    for degree in range(5):
        expected = math.sqrt(2 * degree + 1) * eval_legendre(degree, 2 * x - 1)
        assert np.allclose(values[:, degree], expected, atol=0.02), degree


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 5.0), (6.0, 6.0), (1.0, 3.0)])
def test_the_basis_is_orthonormal_for_the_columns_law_up_to_the_cut_off(a, b):
    """Exactly so for a uniform column; in the tails of others the cut-off costs the high degrees some of it."""
    x = rng.beta(a, b, size=(400_000, 1))
    means, sds = x.mean(axis=0), x.std(axis=0)
    values = Basis.additive(means, sds, 3, 3).at(x)
    gram = values.T @ values / len(values)
    off = np.abs(gram - np.eye(len(gram)))
    assert off[:2, :2].max() < 0.02
    assert off.max() < (0.01 if a == b == 1 else 0.3)


def test_a_column_of_two_values_gets_its_line_only():
    assert len(column_polynomials(0.3, math.sqrt(0.21), 4)) == 2


def test_a_basis_grows_at_its_end_only():
    small = Basis.additive(np.array([0.5, 0.5]), np.array([0.29, 0.5]), 2, 4)
    assert small.terms == ((), ((0, 1),), ((0, 2),), ((1, 1),))
    grown = small.grown([0, 1], [0])
    assert grown.terms[:4] == small.terms
    assert set(grown.terms[4:]) == {((0, 1), (1, 1)), ((0, 2), (1, 1)), ((0, 3),), ((0, 4),)}
    x = rng.random((9, 2))
    assert np.array_equal(grown.at(x)[:, :4], small.at(x))
    assert np.allclose(grown.at(x)[:, 4], small.at(x)[:, 1] * small.at(x)[:, 3])


PLAIN = MomentsModel(
    means=[0.5, 0.3],
    sds=[0.3, 0.2],
    polynomials=[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.1], [0.0, 0.9]]],
    terms=[[], [(0, 1)], [(1, 1)], [(0, 1), (1, 1)]],
    coefficients=[1.0, -0.5, 0.2, 0.1],
    variances=[0.01, 0.02, 0.03, 0.04],
    correlated=[1, 2],
    correlation=[[1.0, 0.5], [0.5, 1.0]],
    truncation_variance=0.005,
)


def test_value_and_sd_by_hand():
    x = np.array([[0.8, 0.3], [0.5, 0.5]])
    first, second = (x[:, 0] - 0.5) / 0.3, 0.1 + 0.9 * (x[:, 1] - 0.3) / 0.2
    basis = np.column_stack([np.ones(2), first, second, first * second])
    assert np.allclose(PLAIN.value(x), basis @ PLAIN.coefficients)
    covariance = np.diag(PLAIN.variances)
    covariance[1, 2] = covariance[2, 1] = 0.5 * math.sqrt(0.02 * 0.03)
    assert np.allclose(PLAIN.sd(x, x) ** 2, np.einsum("ij,jk,ik->i", basis, covariance, basis) + 0.005)


def test_json_round_trip():
    assert msgspec.json.decode(msgspec.json.encode(PLAIN), type=MomentsModel) == PLAIN


@pytest.mark.parametrize(
    "changes",
    [
        {"means": [0.5]}, {"sds": [0.3, 0.0]}, {"coefficients": [1.0]}, {"variances": [-1.0] * 4},
        {"truncation_variance": -1.0}, {"terms": [[], [(0, 2)], [(1, 1)], []]}, {"terms": [[], [(9, 1)], [(1, 1)], []]},
        {"polynomials": [[[1.0]], [[1.0, 2.0]]]}, {"coefficients": [math.inf, 0.0, 0.0, 0.0]}, {"means": [], "sds": []},
        {"correlated": [1]}, {"correlated": [1, 9]}, {"correlation": [[1.0], [0.5]]},
        {"correlation": [[math.nan, 0], [0, 1]]},
    ],
)  # fmt: skip
def test_malformed_models_are_refused(changes):
    with pytest.raises(ReleaseError):
        msgspec.structs.replace(PLAIN, **changes)
