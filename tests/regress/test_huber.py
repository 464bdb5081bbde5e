import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from dpcate.regress.huber import huber_coefficients, huber_minimiser


def objective(theta, phi, rho, psi, n, bound, penalty):
    """The loss whose derivative in g is 2·clip(ρg − ψ, ±B), by integrating it from 0 to g."""
    g = phi @ theta

    def huber(e):
        return np.where(np.abs(e) <= bound, e * e, 2 * bound * np.abs(e) - bound**2)

    with np.errstate(all="ignore"):
        curved = (huber(rho * g - psi) - huber(-psi)) / rho
    flat = -2 * np.clip(psi, -bound, bound) * g
    return np.where(rho > 0, curved, flat).sum() / n + penalty * theta @ theta


def problem(seed, rows=60, width=4):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(rows, width))
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    return phi, rng.choice([0.0, 0.1, 0.3, 0.9], size=rows), rng.standard_t(2, size=rows)


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.3, 10.0]), st.sampled_from([1e-4, 0.05, 2.0]))
def test_certificate_is_the_gradient_of_the_loss(seed, bound, penalty):
    phi, rho, psi = problem(seed)
    theta = huber_minimiser(phi, rho, psi, n=60, score_bound=bound, penalty=penalty, tolerance=1e-10)
    scores = np.clip(rho * (phi @ theta) - psi, -bound, bound)
    gradient = 2 * phi.T @ scores / 60 + 2 * penalty * theta
    assert np.linalg.norm(gradient) <= 1e-10


@pytest.mark.parametrize("seed", range(5))
def test_minimum_against_scipy(seed):
    phi, rho, psi = problem(seed)
    arguments = (phi, rho, psi, 60, 0.4, 0.05)
    theta = huber_minimiser(phi, rho, psi, n=60, score_bound=0.4, penalty=0.05, tolerance=1e-10)
    reference = minimize(objective, np.zeros(4), args=arguments, method="BFGS", options={"gtol": 1e-9}).x
    assert objective(theta, *arguments) <= objective(reference, *arguments) + 1e-12
    assert np.allclose(theta, reference, atol=1e-4)
    assert np.abs(approx_fprime(theta, objective, 1e-7, *arguments)).max() < 1e-5


def test_without_clipping_it_is_ridge_regression():
    phi, rho, psi = problem(3)
    theta = huber_minimiser(phi, rho, psi, n=60, score_bound=1e6, penalty=0.05, tolerance=1e-12)
    assert np.allclose(theta, np.linalg.solve((phi.T * rho) @ phi / 60 + 0.05 * np.eye(4), phi.T @ psi / 60))


def test_rows_without_weight_change_nothing():
    phi, rho, psi = problem(4)
    settings = {"n": 60, "score_bound": 0.4, "penalty": 0.05, "tolerance": 1e-12}
    padded = [np.concatenate([phi, phi]), np.r_[rho, 0 * rho], np.r_[psi, 0 * psi]]
    assert np.allclose(huber_minimiser(phi, rho, psi, **settings), huber_minimiser(*padded, **settings))


def test_no_rows_give_zero():
    empty = np.zeros(0)
    theta = huber_minimiser(np.zeros((0, 3)), empty, empty, n=10, score_bound=1, penalty=1, tolerance=1e-9)
    assert np.array_equal(theta, np.zeros(3))


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.3, 10.0]), st.sampled_from([1e-3, 0.05, 2.0]))
def test_coefficients_of_the_rows_give_the_same_minimiser(seed, bound, penalty):
    """From inner products alone, of more rows than there are dimensions."""
    phi, rho, psi = problem(seed)
    settings = {"n": 60, "score_bound": bound, "penalty": penalty, "tolerance": 1e-9}
    alpha = huber_coefficients(phi @ phi.T, rho, psi, **settings)
    theta = huber_minimiser(phi, rho, psi, **settings)
    assert np.linalg.norm(phi.T @ alpha - theta) <= 2e-9 / (2 * penalty) + 1e-10


def test_coefficients_where_every_row_is_clipped_or_there_is_none():
    phi, _, _ = problem(5)
    settings = {"n": 60, "score_bound": 0.1, "penalty": 0.05, "tolerance": 1e-9}
    alpha = huber_coefficients(phi @ phi.T, np.full(60, 1e-6), np.full(60, 5.0), **settings)
    assert np.allclose(alpha, 0.1 / (60 * 0.05))
    assert huber_coefficients(np.zeros((0, 0)), np.zeros(0), np.zeros(0), **settings).shape == (0,)
