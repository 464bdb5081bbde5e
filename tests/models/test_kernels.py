import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gamma, kv

from dpcate.errors import InputError
from dpcate.models.kernels import PROFILES, gram


@pytest.mark.parametrize("kind", PROFILES)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 30), bandwidth=st.sampled_from([1e-3, 0.3, 50.0]))
def test_the_diagonal_is_exactly_one_and_the_matrix_positive(kind, seed, width, bandwidth):
    points = np.random.default_rng(seed).random((15, width))
    K = gram(kind, bandwidth, points, points)
    assert (np.diag(K) == 1.0).all()
    assert np.array_equal(K, K.T)
    assert K.max() <= 1.0
    assert np.linalg.eigvalsh(K).min() > -1e-13


def test_the_gaussian_kernel():
    a, b = np.random.default_rng(0).random((2, 4, 3))
    expected = [[math.exp(-((x - z) ** 2).sum() / (2 * 0.3**2)) for z in b] for x in a]
    assert np.allclose(gram("gaussian", 0.3, a, b), expected)


@pytest.mark.parametrize(("kind", "nu"), [("matern32", 1.5), ("matern52", 2.5)])
def test_matern_kernels_are_the_bessel_formula(kind, nu):
    distance = np.linspace(0.01, 3, 40)
    scaled = math.sqrt(2 * nu) * distance / 0.7
    expected = 2 ** (1 - nu) / gamma(nu) * scaled**nu * kv(nu, scaled)
    assert np.allclose(gram(kind, 0.7, np.zeros((1, 1)), distance[:, None])[0], expected)


@pytest.mark.parametrize(
    ("kind", "bandwidth"),
    [("rbf", 1.0), ("gaussian", 0.0), ("gaussian", math.nan), ("gaussian", math.inf), ("gaussian", "1"), (None, 1.0)],
)
def test_bad_kernels_are_refused(kind, bandwidth):
    with pytest.raises(InputError):
        gram(kind, bandwidth, np.zeros((1, 1)), np.zeros((1, 1)))
