import copy
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from dpcate.errors import InputError
from dpcate.privacy.noise import ExactNoise, SeededNoise, StreamNoise, noise_source

pytestmark = pytest.mark.fork


def test_seeded_noise_is_reproducible_and_says_so():
    first, second = (SeededNoise(7).add(np.zeros(5), 2.0) for _ in range(2))
    assert np.array_equal(first, second)
    assert not SeededNoise(7).private


def test_secure_noise_is_not_reproducible():
    assert ExactNoise().private
    assert not np.array_equal(ExactNoise().add(np.zeros(5), 2.0), ExactNoise().add(np.zeros(5), 2.0))
    assert not np.array_equal(StreamNoise().bulk((5,), 1.0), StreamNoise().bulk((5,), 1.0))


@pytest.mark.parametrize("sd", [1e-12, 1.0, 1e12])
def test_exact_noise_keeps_its_scale_over_magnitudes(sd):
    draws = 5000
    z = ExactNoise().add(np.zeros(draws), sd) / sd
    assert chi2.ppf(1e-9, draws) < z @ z < chi2.isf(1e-9, draws)


def test_exact_noise_adds_on_the_grid():
    """What is added does not depend on the value: values far larger than the noise lose none of its high digits."""
    source = ExactNoise()
    source._ahead = [3 << 62, -5, 0]
    assert source.add(np.array([1e6, 0.0, -0.5]), 1.0).tolist() == [1e6 + 0.75, -5 / 2**64, -0.5]


def test_no_draw_serves_twice():
    source = ExactNoise()
    drawn = np.concatenate([source.add(np.zeros(size), 1.0) for size in (1, 300, 300, 1000, 3)])
    assert len(set(drawn.tolist())) == len(drawn)
    with ThreadPoolExecutor(4) as threads:
        drawn = np.concatenate(list(threads.map(lambda _: source.add(np.zeros(7), 1.0), range(200))))
    assert len(set(drawn.tolist())) == len(drawn)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InputError, match="copied"):
            copied(source)


@pytest.mark.parametrize("draw", [lambda source: source.add(np.zeros(4), 1.0), lambda source: source.bulk((4,), 1.0)])
def test_a_forked_process_draws_other_noise(draw):
    source = ExactNoise()
    draw(source)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, draw(source).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 64) != draw(source).tobytes()


def test_bulk_noise_is_gaussian():
    """A Kolmogorov-Smirnov test that a true Gaussian fails with probability 1e-9."""
    z = StreamNoise().bulk((20_000,), 3.0) / 3.0
    assert kstest(z, norm.cdf).pvalue > 1e-9


@pytest.mark.parametrize("random_state", [-1, 1.5, "a", True, math.nan])
def test_bad_random_state_is_refused(random_state):
    with pytest.raises(InputError, match="random_state"):
        noise_source(random_state)
