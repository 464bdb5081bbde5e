import numpy as np
import pytest

from dpcate.errors import InputError
from dpcate.orthogonal import DR, R, Weight, learner_named

rng = np.random.default_rng(0)
N = 400
X = rng.random((N, 2))
PI = 0.2 + 0.6 * X[:, 0]
MU0, MU1 = np.sin(3 * X[:, 1]), np.cos(2 * X[:, 0]) + X[:, 1]
T = (rng.random(N) < PI).astype(float)
Y = np.where(T == 1, MU1, MU0) + rng.normal(size=N)


class Truth:
    def __init__(self, pi=PI, mu0=MU0, mu1=MU1):
        self.pi, self.mu0, self.mu1 = pi, mu0, mu1

    def propensity(self, x):
        return self.pi

    def outcome(self, x):
        return self.pi * self.mu1 + (1 - self.pi) * self.mu0

    def outcome_by_arm(self, x):
        return self.mu0, self.mu1


overlap = Weight("overlap", lambda p: p * (1 - p), lambda p: 1 - 2 * p)
treated = Weight("treated", lambda p: p, np.ones_like)


def test_r_learner_is_the_residual_regression():
    pair = R().pair(T, Y, X, Truth())
    w, t = T - PI, Y - (PI * MU1 + (1 - PI) * MU0)
    assert np.allclose(pair.rho, w**2)
    assert np.allclose(pair.rho_phi, w * t)


def test_r_learner_is_the_general_form_with_overlap_weights():
    special, general = R().pair(T, Y, X, Truth()), overlap.pair(T, Y, X, Truth())
    assert np.allclose(special.rho, general.rho)
    assert np.allclose(special.rho_phi, general.rho_phi)
    assert (overlap.curvature(0.3), overlap.multiplier) == pytest.approx((R().curvature(0.3), R().multiplier))


def test_dr_learner_is_the_doubly_robust_score():
    pair = DR.pair(T, Y, X, Truth())
    ipw = T * (Y - MU1) / PI - (1 - T) * (Y - MU0) / (1 - PI)
    assert np.allclose(pair.rho, 1.0)
    assert np.allclose(pair.rho_phi, MU1 - MU0 + ipw)


@pytest.mark.parametrize("learner", [overlap, treated, DR])
def test_general_form_against_the_papers_phi(learner):
    """φ as printed divides by ρ; where ρ > 0 both must agree."""
    pair = learner.pair(T, Y, X, Truth())
    lam, derivative = learner.weight(PI), learner.derivative(PI)
    rho = (T - PI) * derivative + lam
    positive = rho > 1e-9
    phi = lam / np.where(positive, rho, 1) * (T - PI) / (PI * (1 - PI)) * (Y - np.where(T == 1, MU1, MU0)) + MU1 - MU0
    assert np.allclose(pair.rho, rho)
    assert np.allclose(pair.rho_phi[positive], (rho * phi)[positive])


@pytest.mark.parametrize("learner", [R(), overlap, treated, DR])
def test_orthogonality_the_score_does_not_feel_first_order_nuisance_errors(learner):
    """The mean of (ρφ − ρτ) over (a, y) given x has zero derivative in each nuisance, at the truth."""
    tau, direction = MU1 - MU0, np.sin(7 * X[:, 0])

    def expected_score(step, which):
        moved = {"pi": PI, "mu0": MU0, "mu1": MU1}
        moved[which] = moved[which] + step * direction
        truth = Truth(**moved)
        total = np.zeros(N)
        for arm, probability, mean in ((0.0, 1 - PI, MU0), (1.0, PI, MU1)):
            pair = learner.pair(np.full(N, arm), mean, X, truth)
            total += probability * (pair.rho_phi - pair.rho * tau)
        return total

    for which in ("pi", "mu0", "mu1"):
        slope = (expected_score(1e-5, which) - expected_score(-1e-5, which)) / 2e-5
        assert np.abs(slope).max() < 1e-8, which


def test_dr_score_is_bounded_by_the_range_over_the_floor():
    kappa, low, high = 0.05, -2.0, 3.0
    grid = np.array(np.meshgrid([kappa, 1 - kappa], [low, high], [low, high], [low, high], [0.0, 1.0])).reshape(5, -1)
    pi, mu0, mu1, y, a = grid
    pair = DR.pair(a, y, None, Truth(pi, mu0, mu1))
    assert np.abs(pair.rho_phi).max() <= (high - low) / kappa + 1e-9


@pytest.mark.parametrize("learner", [R(), overlap, treated, DR])
def test_limits_hold_at_every_corner(learner):
    kappa, low, high = 0.05, -2.0, 3.0
    inner = np.linspace(kappa, 1 - kappa, 9)
    grid = np.array(np.meshgrid(inner, [low, high], [low, high], [low, high], [0.0, 1.0])).reshape(5, -1)
    pi, mu0, mu1, y, a = grid
    pair = learner.pair(a, y, None, Truth(pi, mu0, mu1))
    rho, rho_phi = learner.limits(kappa, high - low)
    assert pair.rho.max() <= rho * (1 + 1e-9)
    assert 0.5 * rho_phi <= np.abs(pair.rho_phi).max() <= rho_phi * (1 + 1e-9)


def test_pairs_show_nothing():
    assert repr(R().pair(T, Y, X, Truth())) == "<OrthogonalPair: sealed>"


def test_bad_weights_are_refused():
    with pytest.raises(InputError, match="negative in one arm"):
        Weight("steep", lambda p: np.exp(8 * p), lambda p: 8 * np.exp(8 * p))
    with pytest.raises(InputError, match="not its derivative"):
        Weight("wrong", lambda p: p * (1 - p), np.ones_like)
    with pytest.raises(InputError, match="positive and finite"):
        Weight("sign", lambda p: p - 0.5, np.ones_like)
    with pytest.raises(InputError, match="name"):
        Weight("", np.ones_like, np.zeros_like)
    for learner in ("t", None, 3):
        with pytest.raises(InputError, match="learner must be"):
            learner_named(learner)
