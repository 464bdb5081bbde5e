import numpy as np
import pytest

from dpcate.bins import SIZE_BINS, size_bins, size_edges
from dpcate.diagnostics.counted import clip_from, quantiles
from dpcate.diagnostics.variance import widened
from dpcate.privacy import Noisy

SIZES = np.abs(np.random.default_rng(0).normal(size=100_000))


def counts(values, largest):
    return np.bincount(size_bins(values, size_edges(largest)), minlength=SIZE_BINS).astype(float)


def test_a_clip_lies_where_few_are_beyond():
    clip = clip_from(Noisy(counts(SIZES, 40.0), 1e-9), 40.0, beyond=1.0)
    assert np.quantile(SIZES, 0.99) <= clip <= np.sqrt(2) * np.quantile(SIZES, 0.99)
    assert clip_from(Noisy(counts(SIZES, 40.0), 1e-9), 40.0, beyond=2.0) == 2 * clip


def test_where_nothing_is_seen_nothing_is_clipped():
    assert clip_from(Noisy(counts(SIZES[:100], 40.0), 1e3), 40.0, beyond=2.0) == 40.0
    assert clip_from(Noisy(np.zeros(SIZE_BINS), 1.0), 40.0, beyond=2.0) == 40.0


def test_sizes_beyond_the_largest_and_gaps_have_a_bin():
    bins = size_bins(np.array([0.0, 1e300, -np.inf, np.nan, 40.0]), size_edges(40.0))
    assert bins.tolist() == [0, SIZE_BINS - 1, SIZE_BINS - 1, 0, SIZE_BINS - 1]
    assert size_edges(40.0)[-1] == 40.0


def test_quantiles_are_those_of_the_counts():
    values = np.random.default_rng(1).beta(2, 5, 200_000)
    edges = np.linspace(0, 1, 41)
    noisy = Noisy(np.histogram(values, edges)[0].astype(float), 1.0)
    levels = np.array([0.1, 0.5, 0.9])
    assert quantiles(noisy, edges, levels) == pytest.approx(np.quantile(values, levels), abs=0.005)
    none = Noisy(np.full(40, -1.0), 1.0)
    assert quantiles(none, edges, levels) == pytest.approx(levels)


def test_a_variance_with_noise_is_widened_until_scores_are_normal():
    """E[1/(V + η)] times the widened variance is 1 to second order; never below the privacy noise."""
    eta = 0.15 * np.random.default_rng(0).normal(size=200_000)
    squared = np.mean([1 / widened(0.5, 0.5 + e, 0.15) for e in eta])
    assert squared == pytest.approx(1.0, abs=0.005)
    assert widened(2.0, -5.0, 1.0) == pytest.approx(2.5)
