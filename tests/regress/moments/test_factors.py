"""What intervals add for noise, for columns half chosen and for what is unseen, and what squares of columns are."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpcate.models.basis import Basis
from dpcate.regress.columns import LARGEST_SQUARE, cut_square
from dpcate.regress.moments.belief import FEW, Evidence, Observation, Prior
from dpcate.regress.moments.rounds import Block, State
from dpcate.regress.moments.stage import (
    CONFOUNDING,
    CONSTANT,
    NOISY_CONSTANT,
    OFF_CENTRE,
    OTHER_REASONS,
    PRODUCTS,
    SELECTION,
    TERMS,
    UNEVEN,
    UNRESOLVED,
    Unseen,
    _constant,
    _filled,
    _half_chosen,
    _missing_products,
    _model,
    _unseen,
)
from dpcate.regress.sizes import Sizes


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


def half_chosen(means, variances):
    belief = seen([0.0, *means]).belief(TERM_COLUMNS, 0.0)
    return _half_chosen(dataclasses.replace(belief, mean=np.array([9.0, *means]), variance=np.array([9.0, *variances])))


def test_columns_are_half_chosen_where_half_of_the_energy_is_known():
    assert half_chosen([1.0, 1.0, 0.0], [1.0, 1.0, 0.0]) == pytest.approx(1 / 4)
    assert half_chosen([1.0, 0.0, 0.0], [1.0, 1.0, 1.0]) == pytest.approx(3 / 16)
    assert half_chosen([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]) == 0.0


def many(matter, precision=25.0):
    """Eight columns of which the first few matter beyond doubt, and what is believed of each after one look."""
    width = 8
    basis = Basis.additive(np.full(width, 0.5), np.full(width, 0.29), 1, 1)
    prior = Prior(0.0, 100.0, np.array([1.0]), np.array([3.0]), width)
    means = np.r_[0.0, np.full(matter, 1.5), np.zeros(width - matter)]
    evidence = Evidence(prior, (Observation(means, np.zeros(width + 1), np.full(width + 1, precision)),))
    sizes = Sizes(np.ones(2), np.full(2, 0.1), np.ones(2), np.full(2, 0.5))
    return State(1e6, basis, 0.0, (Block(evidence, 0.25, np.ones(2), 1.0),), sizes)


@pytest.mark.parametrize("matter", [1, 2, 4, 5, 8])
def test_intervals_widen_with_every_column_beyond_a_few_that_seems_to_matter(matter):
    counted = many(matter)
    belief, model = counted.beliefs[0], _model(counted, Unseen())
    further = max(belief.columns - FEW, 0.0)
    assert belief.columns == pytest.approx(matter, abs=0.8)
    assert (further > 0) == (matter > FEW)
    factor = TERMS + SELECTION * further * _half_chosen(belief)
    assert model.variances[1:] == pytest.approx(factor * belief.variance[1:])
    assert model.truncation_variance == pytest.approx(
        PRODUCTS * further * _missing_products(counted.basis, belief.mean)
    )


def test_degrees_beyond_matter_less_where_a_column_does_not_fill_its_range():
    sds = np.array([0.29, 0.26, 0.13, 0.026])
    np.testing.assert_allclose(_filled(Basis.additive(np.full(4, 0.5), sds, 2, 2)), [1.0, 1.0, 0.25, 0.01])


def state(means=(0.0, 0.0, 0.0, 0.0), precision=25.0, scales=(1.0, 1.0)):
    basis = Basis.additive(np.full(3, 0.5), np.full(3, 0.29), 1, 1)
    sizes = Sizes(np.array(scales), np.full(2, 0.1), np.array(scales), np.full(2, 0.5))
    return State(1000.0, basis, 0.0, (Block(seen(means, precision), 0.25, np.ones(2), 1.0),), sizes)


def test_what_rows_alone_would_not_leave_in_the_constant_counts_for_more():
    """sampling is 1/(1000·0.25²) = 0.016: of a variance of 0.04 + 0.016 that is two sevenths."""
    known, hidden = state(precision=1e12), state()
    assert known.sampling(known.blocks[0]) == pytest.approx(0.016)
    assert _constant(known) == pytest.approx(CONSTANT * 0.016, rel=1e-3)
    assert _constant(hidden) == pytest.approx((CONSTANT + NOISY_CONSTANT * 5 / 7) * 0.056, rel=1e-3)


@pytest.mark.parametrize(("treated_scale", "expected"), [(0.5, 0.0), (1.05, 0.0), (2.0, 4.0 - 1 - OTHER_REASONS)])
def test_effects_vary_unseen_where_residuals_of_the_treated_vary_more(treated_scale, expected):
    """Scales of scores are those of outcomes times what a unit of outcome does to a score, arm by arm."""
    start = SimpleNamespace(treated=0.2, confounding=0.3)
    problem = SimpleNamespace(start=start, curvature=0.16)
    counted = state(scales=(1.0 * 0.2, treated_scale * 0.8))
    unseen = _unseen(counted, problem)
    assert unseen.elsewhere == pytest.approx(expected)
    assert unseen.most == pytest.approx(1.0 + treated_scale**2)
    unknown = counted.beliefs[0].variance[1:].sum()
    assert unseen.average == pytest.approx(CONFOUNDING * 0.3 + OFF_CENTRE * unknown / 0.16**2)


def test_what_is_unseen_shrinks_the_average_and_widens_the_interval():
    counted = state(means=(2.0, 1.0, 0.0, 0.0))
    plain, doubted = _model(counted, Unseen()), _model(counted, Unseen(average=50.0, elsewhere=3.0))
    assert plain.coefficients[0] == pytest.approx(2.0, abs=0.01)
    assert doubted.coefficients[0] == pytest.approx(2.0 * 100 / 150, abs=0.01)
    assert doubted.coefficients[1:] == plain.coefficients[1:]
    assert doubted.variances[0] == pytest.approx(plain.variances[0] + UNRESOLVED * 50.0)
    assert doubted.truncation_variance == pytest.approx(plain.truncation_variance + UNEVEN * 3.0)


def test_intervals_claim_no_larger_errors_than_residuals_hold():
    counted = state(means=(2.0, 1.0, 0.0, 0.0))
    free, held = _model(counted, Unseen(elsewhere=30.0)), _model(counted, Unseen(elsewhere=30.0, most=4.0))
    assert sum(held.variances[1:]) + held.truncation_variance == pytest.approx(4.0)
    assert held.truncation_variance / held.variances[1] == pytest.approx(free.truncation_variance / free.variances[1])
    assert held.variances[0] == free.variances[0]
    assert held.coefficients == free.coefficients


def test_missing_products_are_those_of_pairs_that_the_basis_lacks():
    basis = Basis.additive(np.full(3, 0.5), np.full(3, 0.29), 2, 2).grown([0, 1], [])
    mean = np.random.default_rng(0).normal(size=len(basis.terms))
    energy = [
        sum(m**2 for term, m in zip(basis.terms, mean, strict=True) if [j for j, _ in term] == [c]) for c in range(3)
    ]
    expected = (energy[0] * energy[2] + energy[1] * energy[2]) / sum(energy)
    assert _missing_products(basis, mean) == pytest.approx(expected)


def test_one_column_has_no_products():
    basis = Basis.additive(np.full(2, 0.5), np.full(2, 0.29), 2, 2)
    assert _missing_products(basis, np.array([5.0, 1.0, 2.0, 0.0, 0.0])) == pytest.approx(0.0)
    assert _missing_products(basis, np.zeros(5)) == 0.0
