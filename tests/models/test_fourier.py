import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcate.errors import ReleaseError
from dpcate.models import FourierModel
from dpcate.models.fourier import fourier_features, frequencies, shrinkage_spectrum

rng = np.random.default_rng(1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.01, 0.3, 5.0]))
def test_features_have_norm_one_everywhere(seed, width, bandwidth):
    points = np.random.default_rng(seed).choice([0.0, 1.0, 0.5, 0.123], size=(20, width))
    phi = fourier_features(points, frequencies(32, width, bandwidth))
    assert np.allclose(np.linalg.norm(phi, axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_features_approach_the_gaussian_kernel(width):
    h = 0.5
    x, z = rng.random((2, 50, width))
    phi, psi = (fourier_features(points, frequencies(4096, width, h)) for points in (x, z))
    kernel = np.exp(-((x - z) ** 2).sum(1) / (2 * h * h))
    assert np.abs((phi * psi).sum(1) - kernel).max() < 0.02


def model(**changes):
    plain = FourierModel(
        offset=1.0, offset_sd=0.1, frequencies=frequencies(8, 2, 0.4).tolist(), coefficients=[0.3] * 16,
        coefficient_sd=0.2, sampling_sd=0.05, prior_sd=0.5, curvature=0.25, penalty=0.02,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def test_value_is_the_offset_plus_the_inner_product():
    points = rng.random((5, 2))
    expected = 1.0 + fourier_features(points, frequencies(8, 2, 0.4)) @ np.full(16, 0.3)
    assert np.allclose(model().value(points), expected)


def test_sd_is_privacy_noise_sampling_noise_and_shrinkage():
    points, reference = rng.random((5, 2)), rng.random((200, 2))
    exact = model(prior_sd=0.0).sd(points, reference)
    assert np.allclose(exact, np.sqrt(0.1**2 + 0.2**2 + 0.05**2))
    phi, omega = fourier_features(reference, frequencies(8, 2, 0.4)), frequencies(8, 2, 0.4)
    A = 0.25 * phi.T @ phi / len(phi) + 0.02 * np.eye(16)
    at = fourier_features(points, omega)
    shrinkage = 0.5 * 0.02 * np.linalg.norm(np.linalg.solve(A, at.T), axis=0)
    assert np.allclose(model().sd(points, reference) ** 2, exact**2 + shrinkage**2)


def test_shrinkage_takes_nothing_without_penalty_and_all_with_a_large_one():
    reference, omega = rng.random((500, 1)), frequencies(2, 1, 0.5)
    assert shrinkage_spectrum(omega, reference, 1.0, 1e-12)[1].max() < 1e-6
    assert shrinkage_spectrum(omega, reference, 1.0, 1e12)[1].min() > 1 - 1e-6


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": np.inf}, {"coefficients": [np.nan] * 16}, {"coefficient_sd": -1.0}, {"penalty": 0.0},
        {"coefficients": [0.0] * 15}, {"frequencies": [[0.0], [0.0, 1.0]], "coefficients": [0.0] * 4},
        {"frequencies": [], "coefficients": []}, {"frequencies": [[]], "coefficients": [0.0, 0.0]},
    ],
)  # fmt: skip
def test_malformed_models_are_refused(changes):
    with pytest.raises(ReleaseError):
        model(**changes)
