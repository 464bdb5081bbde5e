import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest, norm

from dpcate.privacy.gaussian import _below, _coins, _runs, discrete_gaussian
from dpcate.privacy.noise import _on_grid

DRAWS = 200_000
SURELY = 1e-9  # how seldom a right sampler may fail, were its bytes not fixed


def random_bytes(seed):
    return np.random.default_rng(seed).bytes


def fits(counts, chances):
    """Pearson's test, rare values together."""
    expected = np.asarray(chances) * np.sum(counts)
    common = expected > 20
    seen = np.r_[np.asarray(counts)[common], np.sum(np.asarray(counts)[~common])]
    wanted = np.r_[expected[common], max(np.sum(counts) - expected[common].sum(), 1.0)]
    return float(((seen - wanted) ** 2 / wanted).sum()) < chi2.isf(SURELY, len(wanted) - 1)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_draws_on_a_coarse_grid_have_the_discrete_gaussians_chances(bits):
    """Where neighbouring points differ much, any term that is missing in an exponent shows."""
    steps = np.arange(-40 * 2**bits, 40 * 2**bits + 1)
    chances = np.exp(-((steps / 2**bits) ** 2) / 2)
    drawn = np.array(discrete_gaussian(DRAWS, random_bytes(bits), bits))
    counts = np.bincount(drawn - steps[0], minlength=len(steps))
    assert fits(counts, chances / chances.sum())
    wrong = np.exp(-((steps / 2**bits) ** 2) / 2.2)
    assert not fits(counts, wrong / wrong.sum())


def test_draws_agree_with_opendps():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=20_000), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=4.0)([0] * 20_000))
    ours = np.array(discrete_gaussian(20_000, random_bytes(5), 2))
    steps = np.arange(-10, 11)
    first, second = (np.array([(drawn == step).sum() for step in steps]) for drawn in (ours, theirs))
    assert ((first - second) ** 2 / (first + second)).sum() < chi2.isf(SURELY, len(steps))


def test_draws_on_the_fine_grid_are_gaussian():
    z = np.array(discrete_gaussian(DRAWS, random_bytes(0)), dtype=float) / 2**64
    assert kstest(z, norm.cdf).pvalue > SURELY
    assert chi2.ppf(SURELY, DRAWS) < z @ z < chi2.isf(SURELY, DRAWS)


def test_draws_are_independent_of_each_other():
    z = np.array(discrete_gaussian(DRAWS, random_bytes(1)), dtype=float) / 2**64
    for lag in (1, 2, 7):
        assert abs(z[lag:] @ z[:-lag]) < norm.isf(SURELY) * math.sqrt(DRAWS)


def test_coins_show_heads_with_probability_exp_minus_gamma():
    rng = np.random.default_rng(2)
    for gamma in (0.1, 0.5, 1.0):
        heads = _coins(DRAWS, lambda number, lanes, gamma=gamma: rng.random(len(lanes)) < gamma / number).sum()
        spread = math.sqrt(DRAWS * math.exp(-gamma) * (1 - math.exp(-gamma)))
        assert abs(heads - DRAWS * math.exp(-gamma)) < norm.isf(SURELY) * spread


def test_runs_are_geometric_and_none_is_cut():
    """A run that ended with the coins at hand would be too short; so many short batches would show it."""
    random = random_bytes(3)
    runs = np.concatenate([_runs(3, random) for _ in range(4000)])
    chances = np.exp(-np.arange(40) / 2) * (1 - math.exp(-0.5))
    assert fits(np.bincount(runs, minlength=40)[:40], chances)


def test_what_lies_beyond_the_last_multiple_is_drawn_again():
    supply = iter([[2**32 - 1, 7], [5, 0]])
    drawn = _below(6, 2, lambda count: np.array(next(supply), dtype=np.uint32).tobytes())
    assert drawn.tolist() == [5, 1]
    every = _below(np.array([3, 5]), 2, lambda count: np.array([2**32 - 2, 2**32 - 2], dtype=np.uint32).tobytes())
    assert every.tolist() == [2, 4]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_values_are_rounded_to_the_nearest_point_of_the_grid(value):
    assert abs(Fraction(_on_grid(value), 2**64) - Fraction(value)) <= Fraction(1, 2**65)
