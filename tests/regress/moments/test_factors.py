"""What intervals hold of columns that hardly matter and of what is unseen; what squares of columns are."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpcate.models.basis import Basis
from dpcate.regress.columns import LARGEST_SQUARE, cut_square
from dpcate.regress.moments.belief import Evidence, Observation, Prior
from dpcate.regress.moments.rounds import Block, State
from dpcate.regress.moments.stage import (
    MANY,
    MANY_POWER,
    MOST,
    OFF_CENTRE,
    OPEN,
    OTHER_REASONS,
    TIMES,
    TYPICALLY_LEFT,
    UNEVEN,
    Residuals,
    _filled,
    _model,
    _residuals,
    _unresolved,
    _unseen,
)
from dpcate.regress.sizes import Sizes

PLENTY = Residuals(hold=1e6, apart=0.0)
NOTHING_UNSEEN = dataclasses.replace(PLENTY, hold=1e-9)


@pytest.mark.parametrize("variance", [1e-3, 0.3, 1.0, 4.0, 60.0])
def test_cut_squares_are_what_integration_says(variance):
    edge, sd = np.sqrt(LARGEST_SQUARE), np.sqrt(variance)
    within = quad(lambda z: z**2 * norm.pdf(z, scale=sd), -edge, edge, points=[-sd, 0.0, sd], limit=200)[0]
    assert cut_square(np.array([variance]))[0] == pytest.approx(within + LARGEST_SQUARE * 2 * norm.sf(edge, scale=sd))


TERM_COLUMNS = ((), ((0, 1),), ((1, 1),), ((2, 1),))


def seen(means, precision=1e4):
    """What is believed of a constant and three columns after one look, whose columns are few and of size 1."""
    prior = Prior(0.0, 100.0, np.array([1.0]), np.array([1.0]), 3)
    return Evidence(prior, (Observation(np.array(means), np.zeros(4), np.full(4, precision)),))


def many(matter, precision=25.0):
    """Eight columns of which the first few matter beyond doubt, and what is believed of each after one look."""
    width = 8
    basis = Basis.additive(np.full(width, 0.5), np.full(width, 0.29), 1, 1)
    prior = Prior(0.0, 100.0, np.array([1.0]), np.array([3.0]), width)
    means = np.r_[0.0, np.full(matter, 1.5), np.zeros(width - matter)]
    evidence = Evidence(prior, (Observation(means, np.zeros(width + 1), np.full(width + 1, precision)),))
    sizes = Sizes(np.ones(2), np.full(2, 0.1), np.ones(2), np.full(2, 0.5))
    return State(1e6, basis, 0.0, (Block(evidence, 0.25, np.ones(2)),), sizes)


@pytest.mark.parametrize("matter", [0, 1, 2, 4, 5, 8])
@pytest.mark.parametrize("apart", [0.0, OTHER_REASONS, 1.2, 20.0])
@pytest.mark.parametrize("hold", [0.5, 3.0, 400.0])
def test_what_is_unseen_is_a_part_of_what_residuals_hold(matter, apart, hold):
    """The open part of the energy; of the found part, more with every column that matters and the more arms differ, up
    to a limit; of residuals that hold far more than is open, or was found, some times as much as that."""
    belief = many(matter).beliefs[0]
    columns = sum(belief.matters.values())
    known, unknown = (belief.mean[1:] ** 2).sum(), belief.variance[1:].sum()
    assert columns == pytest.approx(matter, abs=0.9)
    elsewhere = 0.0
    if columns > 1:
        elsewhere += ((columns - 1) / MANY) ** MANY_POWER
    if apart > OTHER_REASONS:
        elsewhere += UNEVEN * (apart - OTHER_REASONS)
    if elsewhere > MOST:
        elsewhere = MOST
    energy = known + unknown
    expected = OPEN * unknown / energy * (hold if hold < TIMES * unknown else TIMES * unknown)
    expected += elsewhere * known / energy * (hold if hold < TIMES * known else TIMES * known)
    assert _unseen(belief, Residuals(hold, apart)) == pytest.approx(expected)


def test_unseen_effects_never_outgrow_residuals():
    """At most `MOST` times what they hold, whatever was found; so much where every column matters and arms differ."""
    residuals = Residuals(hold=4.0, apart=99.0)
    beliefs = [many(matter, precision).beliefs[0] for matter in (0, 1, 8) for precision in (0.1, 1e6)]
    unseen = [_unseen(belief, residuals) for belief in beliefs]
    assert max(unseen) <= MOST * 4.0
    assert unseen[-1] == pytest.approx(MOST * 4.0, rel=1e-4)


def test_where_looks_found_nothing_and_left_nothing_open_nothing_is_unseen():
    """However much residuals hold: what is not there must not widen an interval for ever."""
    sharp, dull = (many(0, precision).beliefs[0] for precision in (1e9, 0.1))
    residuals = Residuals(hold=50.0, apart=0.5)
    assert _unseen(sharp, residuals) < 0.01
    assert _unseen(dull, residuals) > 0.1 * OPEN * 50.0


def test_terms_of_columns_that_hardly_matter_hardly_widen_a_90_percent_interval():
    """Odds of p to 1 − p count as their squares do; a column that surely matters counts whole."""
    counted = many(3, precision=9.0)
    belief = counted.beliefs[0]
    matters = np.array([belief.matters[(column,)] for column in range(8)])
    likely = matters**2 / (matters**2 + (1 - matters) ** 2)
    np.testing.assert_allclose(belief.likely, np.r_[1.0, likely])
    assert likely[:3].min() > 0.999
    assert likely[3:].max() < matters[3:].max() < 0.3
    model = _model(counted, 0.0, NOTHING_UNSEEN)
    relative = np.array(model.variances[1:]) / (belief.likely * belief.variance)[1:]
    np.testing.assert_allclose(relative, relative[0])


def test_degrees_beyond_matter_less_where_a_column_does_not_fill_its_range():
    sds = np.array([0.29, 0.26, 0.13, 0.026])
    np.testing.assert_allclose(_filled(Basis.additive(np.full(4, 0.5), sds, 2, 2)), [1.0, 1.0, 0.25, 0.01])


def state(means=(0.0, 0.0, 0.0, 0.0), precision=25.0, scales=(1.0, 1.0), shares=(0.5, 0.5)):
    basis = Basis.additive(np.full(3, 0.5), np.full(3, 0.29), 1, 1)
    sizes = Sizes(np.array(scales), np.full(2, 0.1), np.array(scales), np.array(shares))
    return State(1000.0, basis, 0.0, (Block(seen(means, precision), 0.25, np.ones(2)),), sizes)


@pytest.mark.parametrize("treated_scale", [0.5, 1.0, 2.0])
def test_residuals_are_those_of_outcomes_arm_by_arm(treated_scale):
    """Scales of scores are those of outcomes times what a unit of outcome does to a score: λ/(1 − π) and λ/π."""
    scales = (1.0 * 0.2, treated_scale * 0.8)
    start = SimpleNamespace(shares=np.array([0.8, 0.2]))
    variance = 0.8 + 0.2 * treated_scale**2
    going_on = SimpleNamespace(start=start, outcome_scale=4.0, curvature=0.16, treated=np.zeros(1))
    residuals = _residuals(state(scales=scales, shares=(0.6, 0.4)), going_on)
    assert residuals.hold == pytest.approx(2 * variance * math.sqrt(variance / 4.0**2))
    assert residuals.apart == pytest.approx(abs(2 * math.log(treated_scale)))
    anew = SimpleNamespace(start=None, outcome_scale=None, curvature=0.16, treated=np.zeros(1))
    without = _residuals(state(scales=scales, shares=(0.8, 0.2)), anew)
    assert without.hold == pytest.approx(2 * variance * math.sqrt(TYPICALLY_LEFT))
    assert without.apart == pytest.approx(residuals.apart)
    not_told_apart = SimpleNamespace(start=None, outcome_scale=None, curvature=0.16, treated=None)
    assert _residuals(state(scales=scales, shares=(0.8, 0.2)), not_told_apart).apart == 0.0


def test_the_more_of_the_outcome_is_explained_the_less_of_a_residual_is_an_effect():
    """Where nothing is explained twice the residuals' variance may be; at most that, even if outcomes seem narrower."""
    hold = {}
    for outcome_scale in (0.5, 1.0, 10.0):
        start = SimpleNamespace(shares=np.array([0.5, 0.5]))
        going_on = SimpleNamespace(start=start, outcome_scale=outcome_scale, curvature=0.25, treated=np.zeros(1))
        hold[outcome_scale] = _residuals(state(scales=(0.5, 0.5)), going_on).hold
    assert hold == pytest.approx({0.5: 2.0, 1.0: 2.0, 10.0: 0.2})


def test_what_no_look_resolves_of_the_average_is_confounding_and_effects_that_vary_unseen():
    start = SimpleNamespace(shares=np.array([0.8, 0.2]), confounding=0.3)
    counted = state()
    unknown = counted.beliefs[0].variance[1:].sum()
    expected = 0.3 + OFF_CENTRE * unknown / 0.16**2
    assert _unresolved(counted, SimpleNamespace(start=start)) == pytest.approx(expected)


def test_what_is_unresolved_shrinks_the_average_alone():
    """Its variance is that of what looks resolve: 0.04 of noise, and 1/(1000·0.25²) that rows leave."""
    counted = state(means=(2.0, 1.0, 0.0, 0.0))
    plain, doubted = _model(counted, 0.0, NOTHING_UNSEEN), _model(counted, 50.0, NOTHING_UNSEEN)
    assert doubted.variances == plain.variances
    assert plain.variances[0] == pytest.approx(0.056, rel=0.01)
    assert plain.coefficients[0] == pytest.approx(2.0, abs=0.01)
    assert doubted.coefficients[0] == pytest.approx(2.0 * 100 / 150, abs=0.01)
    assert doubted.coefficients[1:] == plain.coefficients[1:]


def test_an_interval_is_made_of_terms_of_degrees_beyond_and_of_what_is_unseen():
    basis = Basis.additive(np.full(3, 0.5), np.full(3, 0.29), 2, 2)
    terms = len(basis.terms)
    prior = Prior(0.0, 100.0, np.array([1.0]), np.array([1.0]), 3)
    look = Observation(np.r_[2.0, 1.0, np.zeros(terms - 2)], np.zeros(terms), np.full(terms, 25.0))
    block = Block(Evidence(prior, (look,)), 0.25, np.ones(2))
    counted = State(1000.0, basis, 0.0, (block,), Sizes.prior(1.0, 0.1))
    belief, model = counted.beliefs[0], _model(counted, 0.0, PLENTY)
    beyond = belief.beyond(np.ones(3))
    assert beyond > 0.01
    assert model.variances == pytest.approx(belief.likely * belief.variance)
    assert model.truncation_variance == pytest.approx(beyond + _unseen(belief, PLENTY))
