"""How findings are read: against brute force, simulation and closed forms."""

import math

import msgspec
import numpy as np
import pytest
from scipy.stats import norm

from dpcate.errors import InputError, ReleaseError
from dpcate.findings import Calibration, Diagnostics, Group, Heterogeneity, OutcomeFit, Overlap, Ratio


def ratio(a, b, va=1.0, vb=1.0, cov=0.0):
    return Ratio(numerator=a, denominator=b, numerator_variance=va, denominator_variance=vb, covariance=cov)


@pytest.mark.parametrize("seed", range(20))
def test_the_interval_is_all_ratios_that_the_two_numbers_allow(seed):
    """Fieller's definition on a grid: every θ for which a − θb is within z of zero."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(2, 2))
    v = factor @ factor.T
    found = ratio(rng.normal(0, 5), rng.normal(12, 2), v[0, 0], v[1, 1], v[0, 1])
    low, high = found.interval(0.1)
    grid = np.linspace(-30, 30, 200_001)
    z = (found.numerator - grid * found.denominator) / np.sqrt(v[0, 0] - 2 * grid * v[0, 1] + grid**2 * v[1, 1])
    allowed = grid[np.abs(z) <= norm.isf(0.05)]
    if math.isfinite(low):
        assert (allowed.min(), allowed.max()) == pytest.approx((low, high), abs=1e-3)
        assert low < found.value < high
    else:
        assert grid[-1] in allowed or grid[0] in allowed


def test_a_denominator_that_may_be_noise_tells_nothing():
    for lost in (ratio(3.0, 1.0), ratio(3.0, -10.0), ratio(0.0, 0.0, vb=0.0)):
        assert lost.interval(0.1) == (-math.inf, math.inf)
        assert math.isnan(lost.value)


def test_intervals_cover_as_often_as_they_say():
    """4,000 draws: a rate of 0.9 is missed by 0.03 with a chance below 1e-9."""
    draws = np.random.default_rng(0).multivariate_normal([2.0, 4.0], [[1.0, 0.6], [0.6, 1.0]], size=4000)
    inside = [low <= 0.5 <= high for low, high in (ratio(a, b, cov=0.6).interval(0.1) for a, b in draws)]
    assert abs(np.mean(inside) - 0.9) < 0.03


def test_overlap_counts_the_bins_beyond_the_margin():
    control, treated = np.arange(20.0), np.arange(20.0)[::-1]
    overlap = Overlap(control=control.tolist(), treated=treated.tolist(), sd=0.5, margin=0.1)
    assert overlap.estimate == pytest.approx(4 * 19 / 380)
    assert overlap.extreme.numerator_variance == pytest.approx(8 * 0.25)
    assert overlap.extreme.denominator_variance == pytest.approx(40 * 0.25)
    low, high = overlap.interval(0.1)
    assert low < overlap.estimate < high


def test_noise_cannot_push_an_interval_out_of_its_range():
    overlap = Overlap(control=[-30.0, *[10.0] * 18, -30.0], treated=[0.0, *[10.0] * 18, 0.0], sd=4.0, margin=0.1)
    low, high = overlap.interval(0.1)
    assert (overlap.estimate, low) == (0.0, 0.0)
    assert 0.02 < high < 0.3
    fit = OutcomeFit(unexplained=ratio(-3.0, 100.0))
    assert fit.estimate == fit.interval()[1] == 1.0
    assert 0.9 < fit.interval()[0] < 1.0


def test_p_values_are_those_of_the_normal_and_of_chi_squared():
    assert Heterogeneity(slope=ratio(1.644853627, 3.0)).p_value == pytest.approx(0.05)
    groups = [Group(predicted=float(k), excess=ratio(z, 50.0)) for k, z in enumerate([1.0, -2.0, 0.5])]
    found = Calibration(groups=groups, cuts=[0.5, 1.5], limit=9.0)
    x = 5.25  # the closed form of χ² with three degrees of freedom
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(x / 2)) + math.sqrt(2 * x / math.pi) * math.exp(-x / 2))
    assert found.estimate == pytest.approx([0.02, 0.96, 2.01])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ratio(math.nan, 1.0), lambda: ratio(1.0, math.inf), lambda: ratio(1.0, 1.0, va=0.0),
        lambda: ratio(1.0, 1.0, vb=-1.0), lambda: ratio(1.0, 1.0, cov=1.1), lambda: ratio(1e101, 1.0),
        lambda: Overlap(control=[1.0], treated=[1.0, 2.0], sd=1.0, margin=0.1),
        lambda: Overlap(control=[], treated=[], sd=1.0, margin=0.1),
        lambda: Overlap(control=[1.0], treated=[1.0], sd=0.0, margin=0.1),
        lambda: Overlap(control=[1.0], treated=[math.inf], sd=1.0, margin=0.1),
        lambda: Overlap(control=[1.0], treated=[1.0], sd=1.0, margin=0.7),
        lambda: Group(predicted=math.nan, excess=ratio(1.0, 1.0)),
        lambda: Calibration(groups=[], cuts=[], limit=1.0),
        lambda: Calibration(groups=[Group(predicted=0.0, excess=ratio(1.0, 1.0))] * 2, cuts=[0.1, 0.2], limit=1.0),
        lambda: Calibration(groups=[Group(predicted=0.0, excess=ratio(1.0, 1.0))] * 3, cuts=[0.2, 0.1], limit=1.0),
    ],
)  # fmt: skip
def test_impossible_findings_are_refused(make):
    with pytest.raises(ReleaseError):
        make()


def test_unknown_fields_are_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"outcome": null, "secret": 1}', type=Diagnostics)


@pytest.mark.parametrize("alpha", [0, 1, "0.1", True, math.nan])
def test_bad_levels_are_refused(alpha):
    with pytest.raises(InputError, match="alpha"):
        ratio(1.0, 10.0).interval(alpha)
