import copy
import os
import pickle

import numpy as np
import pytest
from scipy.stats import chi2

from dpcate.errors import DpcateError, InputError, MechanismError
from dpcate.models.kernels import PROFILES, gram
from dpcate.privacy import Accountant, Budget, Mechanisms, Sensitivity
from dpcate.privacy.mechanisms import ROUNDING_SLACK
from dpcate.privacy.noise import ExactNoise, SeededNoise
from dpcate.privacy.path import BATCH, JITTER, GrowingFactor, NoisePath

pytestmark = pytest.mark.fork

R = 2.5


def kernel(kind="gaussian", bandwidth=0.4):
    return lambda A, B: gram(kind, bandwidth, A, B)


def path(seed=0, kind="gaussian", sd=R, noise=None, journal=None):
    return NoisePath(kernel(kind), sd=sd, noise=noise or SeededNoise(seed), journal=journal)


def one_by_one(path, points):
    return np.concatenate([path.at(point[None]) for point in points])


def covariance(points, kind="gaussian"):
    return kernel(kind)(points, points) + JITTER * np.eye(len(points))


def assert_covariance(draws, expected):
    """Each entry of the empirical second moment within 6.5 of its standard deviations: chance below 1e-10 each."""
    diagonal = np.diag(expected)
    sd = np.sqrt((expected**2 + np.outer(diagonal, diagonal)) / len(draws))
    assert (np.abs(draws.T @ draws / len(draws) - expected) < 6.5 * sd).all()


@pytest.mark.parametrize("kind", PROFILES)
@pytest.mark.parametrize("ask", [NoisePath.at, one_by_one])
def test_many_paths_have_the_declared_covariance(kind, ask):
    points = np.random.default_rng(0).random((5, 2))
    draws = np.array([ask(path(seed, kind), points) for seed in range(4000)])
    assert_covariance(draws, R**2 * covariance(points, kind))


@pytest.mark.parametrize("kind", PROFILES)
def test_a_thousand_questions_are_the_batch_draw(kind):
    """With the same standard normals, both are Lε with LL' = K + τI: the same linear map, hence the same law."""
    points = np.random.default_rng(1).random((1000, 3))
    epsilon = SeededNoise(7).bulk((1000,), 1.0)
    expected = R * np.linalg.cholesky(covariance(points, kind)) @ epsilon
    iterative, batch, mixed = path(7, kind), path(7, kind), path(7, kind)
    assert np.allclose(one_by_one(iterative, points), expected, atol=1e-6)
    assert np.allclose(batch.at(points), expected, atol=1e-6)
    pieces = np.split(points, [1, 8, 9, 300, 301])
    assert np.allclose(np.concatenate([mixed.at(piece) for piece in pieces]), expected, atol=1e-6)


def test_a_thousand_questions_over_many_paths():
    """Joint law: whitened by the factor of K + τI, 25 paths of 1000 answers are 25,000 standard normals."""
    points = np.random.default_rng(2).random((1000, 2))
    factor = np.linalg.cholesky(covariance(points, "matern32"))
    white = [np.linalg.solve(factor, one_by_one(path(s, "matern32"), points) / R) for s in range(25)]
    total = float(np.square(white).sum())
    assert chi2.ppf(1e-7, 25_000) < total < chi2.isf(1e-7, 25_000)


def test_the_last_of_many_questions_have_the_joint_covariance():
    points = np.random.default_rng(3).random((60, 2))
    chosen = [0, 1, 30, 58, 59]
    draws = np.array([one_by_one(path(seed), points)[chosen] for seed in range(1500)])
    assert_covariance(draws, R**2 * covariance(points[chosen]))


def test_the_conditional_law_is_the_textbook_formula():
    points = np.random.default_rng(4).random((30, 2))
    asked = path(0)
    asked.at(points[:-3])
    u = asked._values[:27].copy()
    across, corner = asked._conditional(points[-3:])
    C, v = covariance(points[:-3]), kernel()(points[:-3], points[-3:])
    assert np.allclose(across.T @ asked._white[:27], v.T @ np.linalg.solve(C, u), atol=1e-6)
    assert np.allclose(corner @ corner.T, covariance(points[-3:]) - v.T @ np.linalg.solve(C, v), atol=1e-9)


def test_the_same_point_gets_the_same_noise():
    points = np.random.default_rng(5).random((40, 2))
    asked = path()
    first = asked.at(points)
    assert np.array_equal(one_by_one(asked, points[::-1])[::-1], first)
    twice = asked.at(np.concatenate([points, np.full((2, 2), 0.5), points]))
    assert np.array_equal(twice[:40], first)
    assert np.array_equal(twice[42:], first)
    assert twice[40] == twice[41]
    assert len(asked) == 41


def test_minus_zero_is_zero():
    asked = path()
    assert asked.at([[0.0, 1.0]]) == asked.at([[-0.0, 1.0]])
    assert len(asked) == 1


def test_points_that_nearly_coincide_are_no_trouble():
    """Pivots stay near τ or above, for thousands of points on a line and their copies a hair away."""
    line = np.linspace(0, 1, 700)[:, None]
    asked = path()
    first = asked.at(line)
    hair = one_by_one(asked, line[::7] + 1e-13)
    assert np.abs(hair - first[::7]).max() < 8 * R * np.sqrt(2 * JITTER)
    assert np.isfinite(asked.at(line + 1e-12)).all()


def test_no_points_draw_nothing():
    assert path().at(np.empty((0, 2))).shape == (0,)


def test_batches_beyond_the_joint_size():
    points = np.random.default_rng(6).random((BATCH + 5, 2))
    expected = R * np.linalg.cholesky(covariance(points, "matern32")) @ SeededNoise(1).bulk((len(points),), 1.0)
    assert np.allclose(path(1, "matern32").at(points), expected, atol=1e-7)


# What must not be done instead: each variant fails where the path does not.


def test_wrong_fresh_noise_for_every_question_is_averaged_away():
    point = np.array([[0.3, 0.6]])
    fresh = np.mean([path(seed).at(point)[0] for seed in range(2000)])
    assert abs(fresh) < 6 * R / np.sqrt(2000)
    asked = path(0)
    assert np.mean([asked.at(point)[0] for _ in range(2000)]) == pytest.approx(asked.at(point)[0])


def test_wrong_conditioning_on_outputs_as_the_paper_prints_it():
    """Answers v'C⁻¹y + N(0, k − v'C⁻¹v) for past answers y: the function drops out and so does r."""
    points = np.array([[0.2], [0.25]])
    K, g = covariance(points), np.array([10.0, -10.0])
    weight, rest = K[0, 1] / K[0, 0], K[1, 1] - K[0, 1] ** 2 / K[0, 0]
    printed_mean, printed_variance = weight * g[0], weight**2 * R**2 * K[0, 0] + rest
    assert printed_mean > 9  # where the function is −10
    assert printed_variance < R**2 * K[1, 1]  # too little noise for r > 1


def test_wrong_cutting_eigenvalues_leaves_directions_without_noise():
    points = np.linspace(0, 1, 12)[:, None]
    values, vectors = np.linalg.eigh(kernel()(points, points))
    cut = (vectors * np.where(values > 1e-6, values, 0.0)) @ vectors.T
    contrast = vectors[:, 0]
    assert contrast @ cut @ contrast < 1e-15  # released as it is
    asked = [contrast @ path(seed).at(points) / R for seed in range(300)]
    assert np.mean(np.square(asked)) > 0.5 * JITTER


# Sealed, single, and charged.


def test_a_path_cannot_be_copied_or_printed():
    asked = path()
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InputError):
            attempt(asked)
    assert repr(asked) == "<NoisePath: sealed>"


@pytest.mark.parametrize("points", [[[np.nan, 0.0]], [[np.inf, 0.0]], [0.1, 0.2], [[0.1, 0.2, 0.3]]])
def test_bad_points_are_refused(points):
    asked = path()
    asked.at([[0.1, 0.2]])
    with pytest.raises(InputError):
        asked.at(points)


def test_a_forked_process_is_refused():
    asked = path()
    asked.at([[0.1, 0.2]])
    child = os.fork()
    if child == 0:
        try:
            asked.at([[0.3, 0.4]])
        except MechanismError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_path_whose_journal_failed_answers_no_more():
    class Full:
        points, values = np.empty((0, 2)), np.empty(0)

        def append(self, points, values):
            raise OSError("no space left")

    asked = path(journal=Full())
    with pytest.raises(OSError, match="no space"):
        asked.at([[0.1, 0.2]])
    with pytest.raises(MechanismError, match="open it again"):
        asked.at([[0.1, 0.2]])


def test_the_mechanism_charges_once_and_scales_by_sensitivity_over_mu():
    accountant = Accountant(Budget(epsilon=1.0, delta=1e-6))
    mechanisms = Mechanisms(accountant, SeededNoise(0))
    mu = accountant.budget.mu
    asked = mechanisms.path("f", kernel(), sensitivity=Sensitivity(0.3, "huber-minimiser"), mu=mu)
    one_by_one(asked, np.random.default_rng(0).random((20, 2)))
    assert [charge.mechanism for charge in accountant.charges] == ["gaussian process path"]
    assert asked.sd == pytest.approx(0.3 / mu * (1 + ROUNDING_SLACK), rel=1e-12)
    assert accountant.epsilon_spent() == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(DpcateError):
        mechanisms.path("again", kernel(), sensitivity=Sensitivity(0.3, "huber-minimiser"), mu=mu)


def test_secure_noise_serves_too():
    asked = path(noise=ExactNoise())
    assert asked.private
    assert np.array_equal(asked.at([[0.1, 0.2]]), asked.at([[0.1, 0.2]]))


def test_the_factor_takes_at_most_twice_its_triangle():
    factor, size = GrowingFactor(), 0
    for step in (1, 1, 3, 40, 200):
        factor.append(np.zeros((size, step)), np.eye(step))
        size += step
        assert factor.size == size
        assert factor._packed.nbytes <= 8 * size * (size + 1)
    assert np.array_equal(factor.solve(np.ones((size, 2))), np.ones((size, 2)))
