import math
import os

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


def test_bulk_noise_is_gaussian():
    """A Kolmogorov-Smirnov test that a true Gaussian fails with probability 1e-9."""
    z = StreamNoise().bulk((20_000,), 3.0) / 3.0
    assert kstest(z, norm.cdf).pvalue > 1e-9


def test_bulk_noise_is_rekeyed_after_a_fork():
    source = StreamNoise()
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, source.bulk((4,), 1.0).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 64) != source.bulk((4,), 1.0).tobytes()


@pytest.mark.parametrize("random_state", [-1, 1.5, "a", True, math.nan])
def test_bad_random_state_is_refused(random_state):
    with pytest.raises(InputError, match="random_state"):
        noise_source(random_state)
