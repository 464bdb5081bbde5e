"""Theorem 1 as printed is not (ε, δ)-DP: two neighbouring tables of Dataset 1 that its releases tell apart."""

import math

import numpy as np
from scipy.stats import ncx2

from dpcate import datasets
from dpcate.orthogonal import R
from dpcate.paper.formulas import theorem_1_factor
from dpcate.paper.gross_error import gross_error_sensitivity
from dpcate.paper.kernel_ridge import KernelRidge

EPSILON, DELTA, N = 1.0, 1e-5, 1350


def hockey_stick(epsilon, dimension, sd, other_sd, distance):
    """sup over S of P(S) − e^ε Q(S) for P = N(0, sd²I) and Q = N(v, other_sd²I), ‖v‖ = distance, exactly.

    The log-likelihood ratio is quadratic in x, so the best set is a ball or its complement around a point on the
    line through both centres, and its probabilities are non-central chi-squared.
    """
    curvature = 1 / (2 * other_sd**2) - 1 / (2 * sd**2)
    centre = distance / (2 * curvature * other_sd**2)
    constant = dimension * math.log(other_sd / sd) + distance**2 / (2 * other_sd**2) - curvature * centre**2
    threshold = (epsilon - constant) / curvature
    tail = ncx2.sf if curvature > 0 else ncx2.cdf
    if threshold <= 0:
        return max(1 - math.exp(epsilon), 0.0) if curvature > 0 else 0.0
    p = tail(threshold / sd**2, dimension, centre**2 / sd**2)
    q = tail(threshold / other_sd**2, dimension, (distance - centre) ** 2 / other_sd**2)
    return max(p - math.exp(epsilon) * q, 0.0)


def test_hockey_stick_against_simulation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, 3))
    log_ratio = 3 * math.log(0.8) - (x**2).sum(1) / 2 + ((x - [1.0, 0, 0]) ** 2).sum(1) / (2 * 0.8**2)
    simulated = np.maximum(1 - np.exp(0.5 - log_ratio), 0).mean()
    assert abs(hockey_stick(0.5, 3, 1.0, 0.8, 1.0) - simulated) < 0.006


class Truth:
    def __init__(self, data):
        beta = np.linalg.lstsq(data.X, 2 * data.propensity - 1, rcond=None)[0]
        gamma = np.linalg.lstsq(data.X, data.outcome_control, rcond=None)[0]
        self.propensity = lambda x: np.clip((1 + x @ beta) / 2, 0.05, 0.95)
        effect = lambda x: np.exp(2 * x[:, 0]) + 3 * np.sin(4 * x[:, 0])  # noqa: E731
        self.outcome = lambda x: x @ gamma + self.propensity(x) * effect(x)


def release_law(x, treated, outcome, queries, truth, schema):
    """Mean and sd of the paper's release at the queries, with scikit-learn's defaults (h = 1, λ = 1/n)."""
    pair = R().pair(treated, outcome, x, truth)
    fitted = KernelRidge.fit(x, pair.rho, pair.rho_phi, bandwidth=1.0, penalty=1 / N, n=N)

    def score(x, a, y, g):
        one = R().pair(np.full(len(x), a), np.full(len(x), y), x, truth)
        return one.rho_phi - one.rho * g

    gamma = gross_error_sensitivity(fitted, queries, score, (schema.outcome.low, schema.outcome.high), starts=3)
    return fitted.value(queries), gamma * theorem_1_factor(EPSILON, DELTA, N)


def test_theorem_1_releases_of_neighbours_are_distinguishable_beyond_the_claim():
    data = datasets.synthetic(1, 3000, seed=0)
    truth, queries = Truth(data), data.X[2700:]
    x, treated, outcome = data.X[:N].copy(), data.T[:N].copy(), data.Y[:N].copy()
    mean, sd = release_law(x, treated, outcome, queries, truth, data.schema)
    worst = 0.0
    for corner in ([0.0, 0.0], [1.0, 1.0]):
        for extreme in (data.schema.outcome.low, data.schema.outcome.high):
            for arm in (0.0, 1.0):
                changed = x.copy(), treated.copy(), outcome.copy()
                changed[0][0], changed[1][0], changed[2][0] = corner, arm, extreme
                other_mean, other_sd = release_law(*changed, queries, truth, data.schema)
                shift = float(np.linalg.norm(mean - other_mean))
                worst = max(
                    worst,
                    hockey_stick(EPSILON, 300, sd, other_sd, shift),
                    hockey_stick(EPSILON, 300, other_sd, sd, shift),
                )
    assert worst > 100 * DELTA
