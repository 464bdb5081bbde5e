import numpy as np
import pytest
from scipy.optimize import minimize

from dpcate.models.basis import Basis
from dpcate.regress.moments import rules
from dpcate.regress.moments.belief import Evidence, Observation, Prior
from dpcate.regress.moments.rounds import Block, State, _shrunk_gram, deepened, water_filled
from dpcate.regress.sizes import Sizes


@pytest.mark.parametrize("seed", range(5))
def test_water_filling_is_the_minimum(seed):
    rng = np.random.default_rng(seed)
    variance, importance, capacity = rng.uniform(0.02, 1, 5), rng.uniform(0.1, 1, 5), rng.uniform(5, 60, 5)

    def left(w):
        return float((importance / (1 / variance + capacity * w)).sum())

    filled = water_filled(variance, importance, capacity)
    assert filled.sum() == pytest.approx(1.0)
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(left, np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints=constraint, tol=1e-12)
    assert left(filled) <= best.fun + 1e-8


def test_water_filling_goes_where_most_is_open_however_small_the_budget():
    weight = water_filled(np.array([1.0, 4.0, 1e-14]), np.ones(3), np.full(3, 1e-40))
    np.testing.assert_allclose(weight, [0.0, 1.0, 0.0])
    np.testing.assert_allclose(water_filled(np.ones(3), np.ones(3), np.full(3, 1e-40)), np.full(3, 1 / 3))


def test_a_gram_without_noise_is_kept_and_noise_alone_is_dropped():
    gram = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.4]])
    np.testing.assert_allclose(_shrunk_gram(gram, 1e-4, 1e9), gram, atol=0.02)
    noise = np.random.default_rng(0).normal(size=(20, 20)) * 0.1 / np.sqrt(2)
    noisy = np.eye(20) + np.triu(noise, 1) + np.triu(noise, 1).T
    shrunk = _shrunk_gram(noisy, 0.1, 1e9)
    assert np.abs(shrunk - np.eye(20)).mean() < 0.2 * np.abs(noisy - np.eye(20)).mean()
    assert np.linalg.eigvalsh(_shrunk_gram(-5 * np.ones((3, 3)), 0.01, 1e9)).min() >= 0.1 - 1e-12


def test_public_rules():
    assert rules.first_degree(100.0, 2) == 4
    assert rules.first_degree(100.0, 30) == 3
    assert rules.gram_terms(10.0) == 0
    assert rules.gram_terms(2000.0) > rules.gram_terms(500.0) >= rules.FEWEST_GRAM
    assert rules.gentleness(1000, 0.01, 5.0) == 1.0
    assert rules.gentleness(1e6, 5.0, 5.0) == pytest.approx(np.sqrt(rules.GENTLEST))


def test_columns_grow_once_they_surely_matter_if_they_fill_their_range():
    means, sds = np.array([0.5, 0.5, 0.5, 0.1]), np.array([0.29, 0.29, 0.1, 0.07])
    basis = Basis.additive(means, sds, 3, rules.HIGHEST_DEGREE)
    strong = np.array([bool(term) and term[0][0] != 1 for term in basis.terms])  # all but the second column matter
    seen = Observation(step=strong.astype(float), start=np.zeros(len(strong)), precision=np.full(len(strong), 1e4))
    prior = Prior(0.0, 1.0, np.array([0.5, 1.0]), np.array([1.0, 2.0]), 4)
    block = Block(Evidence(prior, (seen,)), 1.0, np.ones(2), 1.0)
    grown = deepened(State(1e4, basis, 0.01, (block,), Sizes.prior(1.0, 0.1))).basis
    highest = [max(degree for term in grown.terms for j, degree in term if j == column) for column in range(4)]
    assert highest == [rules.HIGHEST_DEGREE, 3, 3, 3]
    assert grown.terms[: len(basis.terms)] == basis.terms
