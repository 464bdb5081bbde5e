import numpy as np
import pytest
from scipy.stats import expon, halfnorm, norm, uniform

from dpcate.privacy import Noisy
from dpcate.regress.sizes import SIZE_DRIFT, STEADY, Place, Sizes, counted, located, worth_counting, worth_locating

EDGES = 8.0 * 2.0 ** (-np.arange(20)[::-1] / 2)


def looked(low, high, centre, scale, sd, looks):
    """The place found from noiseless counts of a normal law that are believed to have this noise."""
    place = Place.prior(low, high)
    for _ in range(looks):
        edges = worth_locating(place, low, high)
        place = located(Noisy(np.diff(np.r_[0, norm.cdf(edges, centre, scale), 1]), sd), edges, place)
    return place


@pytest.mark.parametrize(("centre", "scale"), [(0.0, 2.0), (6.0, 1.0), (-5.0, 0.8)])
def test_location_and_scale_of_a_normal_law(centre, scale):
    place = looked(-10.0, 10.0, centre, scale, 1e-3, 1)
    assert place.centre == pytest.approx(centre, abs=0.25)
    assert place.scale == pytest.approx(scale, rel=0.25)


def test_the_first_look_is_at_the_whole_range():
    np.testing.assert_allclose(worth_locating(Place.prior(-3.0, 9.0), -3.0, 9.0), np.arange(-2.0, 9.0))


def test_a_second_look_finds_what_is_narrow_within_its_bounds():
    once, twice = (looked(-100.0, 100.0, 4.0, 3.0, 0.03, looks) for looks in (1, 2))
    assert 0 < np.log(twice.scale / 3.0) < 0.6 * np.log(once.scale / 3.0)
    assert twice.centre == pytest.approx(4.0, abs=0.6)
    assert twice.doubt < once.doubt


@pytest.mark.parametrize("centre", [-1e3, 0.0, 55.0, 1e3])
def test_bins_rise_within_the_bounds_wherever_a_place_is_believed_to_be(centre):
    edges = worth_locating(Place(centre, 0.5, 0.1, 0.1), -50.0, 50.0)
    assert (np.diff(edges) > 0).all()
    assert -50 < edges[0] < edges[-1] < 50


def test_without_information_the_prior_remains():
    prior = Place.prior(-10.0, 10.0)
    place = located(Noisy(np.zeros(12), 1e3), worth_locating(prior, -10.0, 10.0), prior)
    assert place.centre == pytest.approx(0.0, abs=1e-6)
    assert place.doubt == pytest.approx(prior.doubt, rel=0.03)
    assert place.scale == pytest.approx(prior.scale, rel=0.03)


def sizes_of(scales, share, sd=1e-4):
    parts = [
        part * np.diff(np.r_[0, halfnorm.cdf(EDGES[:-1], scale=scale), 1])
        for part, scale in zip((1 - share, share), scales, strict=True)
    ]
    return counted(Noisy(np.concatenate(parts), sd), EDGES, Sizes.prior(1.0, 0.7, 0.4))


def test_each_groups_scale_is_found():
    sizes = sizes_of((0.5, 1.8), 0.25)
    np.testing.assert_allclose(sizes.scale, [0.5, 1.8], rtol=0.03)
    np.testing.assert_allclose(sizes.share, [0.75, 0.25], atol=0.01)


def test_the_reach_leaves_little_beyond():
    sizes = sizes_of((0.5, 1.8), 0.5)
    for reach, scale in zip(sizes.reach, (0.5, 1.8), strict=True):
        assert 0.01 < halfnorm.sf(reach, scale=scale) <= 0.0601


def test_a_tail_that_noise_may_explain_is_none():
    """Two kinds of residuals, one of them rare and large: seen through little noise it is reached, through much not."""
    law = 0.8 * halfnorm.cdf(EDGES[:-1], scale=0.3) + 0.2 * halfnorm.cdf(EDGES[:-1], scale=3.0)
    counts = np.tile(0.5 * np.diff(np.r_[0, law, 1]), 2)
    clear, dim = (counted(Noisy(counts, sd), EDGES, Sizes.prior(0.5, 0.5)).reach for sd in (1e-3, 0.02))
    assert (clear > 2).all()
    assert (dim < 1).all()


def test_rows_that_are_not_told_apart():
    counts = np.diff(np.r_[0, halfnorm.cdf(EDGES[:-1], scale=0.7), 1])
    sizes = counted(Noisy(counts, 1e-4), EDGES, Sizes.of_all(2.0, 1.0))
    np.testing.assert_allclose(sizes.scale, [0.7], rtol=0.03)
    np.testing.assert_array_equal(sizes.share, [1.0])


def test_noise_leaves_the_prior():
    sizes = counted(Noisy(np.zeros(40), 1e3), EDGES, Sizes.prior(1.0, 0.5, 0.3))
    np.testing.assert_allclose(sizes.scale, 1.0, rtol=1e-3)
    assert sizes.share[1] == pytest.approx(0.3, abs=1e-6)


LAWS = {
    "uniform": (uniform(scale=2.0), 4 / 3),
    "half-normal": (halfnorm(scale=1.3), 1.69),
    "laplace": (expon(scale=0.8), 1.28),
}


@pytest.mark.parametrize("law", LAWS)
def test_quiet_counts_tell_the_mean_square_of_any_law(law):
    """The half-normal law makes too much of a uniform one, too little of tails; noisy counts leave it at that."""
    sizes, mean_square = LAWS[law]
    shares = np.tile(0.5 * np.diff(np.r_[0, sizes.cdf(EDGES[:-1]), 1]), 2)
    quiet, loud = (counted(Noisy(shares, sd), EDGES, Sizes.prior(1.0, 0.5)) for sd in (1e-4, 0.1))
    np.testing.assert_allclose(quiet.variance, mean_square, rtol=0.08)
    np.testing.assert_allclose(loud.variance, loud.scale**2, rtol=0.04)


def test_a_change_is_believed_sooner_where_counts_are_quiet():
    """Through noise that alone could look like a change the scale hardly moves from a belief that was sure; through
    hardly any it moves nearly all the way."""
    law = np.diff(np.r_[0, halfnorm.cdf(EDGES[:-1], scale=1.35), 1])
    before = Sizes(np.ones(2), np.full(2, 0.02), np.ones(2), np.full(2, 0.5))
    quiet, loud = (counted(Noisy(np.tile(0.5 * law, 2), sd), EDGES, before) for sd in (1e-4, 0.05))
    np.testing.assert_allclose(quiet.scale, 1.35, rtol=0.05)
    assert ((loud.scale > 1.0) & (loud.scale < 1.1)).all()
    assert (loud.doubt < 1.05 * np.hypot(0.02, STEADY)).all()
    assert (loud.doubt < 0.6 * SIZE_DRIFT).all()


def test_only_bins_around_what_was_believed_are_counted():
    believed = Sizes(np.array([0.5, 1.8]), np.full(2, 0.05), np.full(2, 1.0), np.full(2, 0.5))
    edges = worth_counting(EDGES, believed)
    assert set(edges) < set(EDGES)
    assert edges[0] < 0.5 / 3
    assert edges[-1] > 1.8 * 4
    assert len(worth_counting(EDGES, Sizes.prior(1.0, 3.0))) == len(EDGES)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_however_wrong_the_belief_there_are_bins(scale):
    edges = worth_counting(EDGES, Sizes.prior(scale, 0.01))
    assert len(edges) == 2
    assert edges[0] in (EDGES[0], EDGES[-2])


def test_fewer_bins_tell_the_same():
    believed = Sizes.prior(1.0, 0.1)
    edges = worth_counting(EDGES, believed)
    counts = [0.5 * np.diff(np.r_[0, halfnorm.cdf(of[:-1], scale=1.2), 1]) for of in (EDGES, edges)]
    whole, part = (
        counted(Noisy(np.tile(one, 2), 1e-3), of, believed) for one, of in zip(counts, (EDGES, edges), strict=True)
    )
    np.testing.assert_allclose(part.scale, whole.scale, rtol=0.02)
    np.testing.assert_allclose(part.reach, whole.reach)


def test_the_spread_over_both_groups_and_its_doubt():
    sizes = Sizes(np.array([1.0, 3.0]), np.array([0.1, 0.2]), np.ones(2), np.array([0.75, 0.25]))
    log_spread, doubt = sizes.log_spread
    assert log_spread == pytest.approx(0.5 * np.log(0.75 + 2.25))
    draws = np.exp(np.log(sizes.scale) + 0.01 * sizes.doubt * np.random.default_rng(0).normal(size=(100_000, 2)))
    assert doubt == pytest.approx(100 * np.std(0.5 * np.log(draws**2 @ sizes.share)), rel=0.02)
