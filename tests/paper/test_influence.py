"""Influence functions against refits with a little weight on one more row."""

import numpy as np
import pytest

from dpcate.paper.kernel_ridge import KernelRidge
from dpcate.paper.network import SmoothNetwork

rng = np.random.default_rng(3)
N = 60
X = rng.random((N, 2))
W = (rng.random(N) < 0.6) - (0.5 + 0.2 * X[:, 0])
RHO, RHO_PHI = W**2, W * (W * np.exp(X[:, 0]) + rng.uniform(-1, 1, N))
QUERIES = rng.random((5, 2))
Z, Z_RHO, Z_RHO_PHI = np.array([[0.9, 0.1]]), np.array([0.1]), np.array([1.3])


def contaminated(step):
    """(1 − t)P + tδ_z as weighted rows with n = 1."""
    weights = np.r_[np.full(N, (1 - step) / N), step]
    return np.vstack([X, Z]), weights * np.r_[RHO, Z_RHO], weights * np.r_[RHO_PHI, Z_RHO_PHI]


def relative_error(one, other):
    return np.linalg.norm(one - other) / np.linalg.norm(other)


def test_kernel_influence_matches_refits_and_the_printed_one_lacks_the_penalty():
    settings = {"bandwidth": 0.3, "penalty": 0.05}
    fitted = KernelRidge.fit(X, RHO, RHO_PHI, n=N, **settings)
    step = 1e-6
    moved = KernelRidge.fit(*contaminated(step), n=1, **settings)
    difference = (moved.value(QUERIES) - fitted.value(QUERIES)) / step
    influence = fitted.influence(QUERIES, Z, Z_RHO, Z_RHO_PHI)[:, 0]
    assert relative_error(influence, difference) < 1e-4
    printed = fitted.inverse_at(QUERIES, Z)[:, 0] * (Z_RHO_PHI - Z_RHO * fitted.value(Z))
    assert relative_error(printed, difference) > 1e-2


def test_kernel_ridge_is_the_minimiser():
    fitted = KernelRidge.fit(X, RHO, RHO_PHI, n=N, bandwidth=0.3, penalty=0.05)
    gradient = (RHO * fitted.value(X) - RHO_PHI) / N + 0.05 * fitted.dual
    assert np.abs(gradient).max() < 1e-12
    assert fitted.norm() == pytest.approx(np.sqrt(fitted.dual @ fitted.value(X)))


def test_network_influence_matches_refits():
    settings = {"hidden": (3,), "penalty": 0.02, "damping": 0.0, "steps": 5000}
    fitted = SmoothNetwork.fit(X, RHO, RHO_PHI, n=N, **settings)
    assert np.linalg.eigvalsh(fitted.hessian)[0] > 0
    step = 1e-5
    ahead, behind = (SmoothNetwork.fit(*contaminated(t), n=1, **settings) for t in (step, -step))
    difference = (ahead.value(QUERIES) - behind.value(QUERIES)) / (2 * step)
    influence = fitted.influence(QUERIES, Z, Z_RHO, Z_RHO_PHI)[:, 0]
    assert relative_error(influence, difference) < 1e-4


def test_damping_is_a_knob():
    """The larger the damping, the smaller the "sensitivity": no privacy can follow from it."""
    norms = [
        np.linalg.norm(SmoothNetwork.fit(X, RHO, RHO_PHI, n=N, hidden=(3,), damping=damping).inverse_at(QUERIES, Z))
        for damping in (0.1, 1.0, 10.0)
    ]
    assert norms[0] > norms[1] > norms[2]
