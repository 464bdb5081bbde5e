"""What intervals add for degrees beyond the basis, and what squares of columns are expected to be."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpcate.regress.columns import LARGEST_SQUARE, cut_square
from dpcate.regress.moments.belief import Belief
from dpcate.regress.moments.stage import BEYOND, LAWS, SELECTION, SHARPER, _beyond, _selection


@pytest.mark.parametrize("variance", [1e-3, 0.3, 1.0, 4.0, 60.0])
def test_cut_squares_are_what_integration_says(variance):
    edge, sd = np.sqrt(LARGEST_SQUARE), np.sqrt(variance)
    within = quad(lambda z: z**2 * norm.pdf(z, scale=sd), -edge, edge, points=[-sd, 0.0, sd], limit=200)[0]
    assert cut_square(np.array([variance]))[0] == pytest.approx(within + LARGEST_SQUARE * 2 * norm.sf(edge, scale=sd))


@pytest.mark.parametrize("seed", range(10))
def test_degrees_beyond_are_an_average_over_laws(seed):
    rng = np.random.default_rng(seed)
    degrees = int(rng.integers(2, 9))
    mean, variance = rng.normal(size=degrees), rng.uniform(0.01, 0.5, degrees)
    chances, tails = [], []
    for law in LAWS:
        size = sum(m**2 + v for m, v in zip(mean, variance, strict=True)) / sum(law[:degrees])
        sds = [np.sqrt(size * law[k] + variance[k]) for k in range(degrees)]
        chances.append(np.prod([norm.pdf(mean[k], scale=sds[k]) for k in range(degrees)]))
        tails.append(size * sum(law[degrees:]))
    weighed = np.average(tails, weights=np.power(chances, SHARPER))
    assert _beyond(mean, variance) == pytest.approx(BEYOND * weighed)


def test_laws_fall_as_their_closed_forms_say():
    assert LAWS[0].sum() == pytest.approx(np.pi**2 / 6, rel=0.01)
    assert LAWS[2].sum() == pytest.approx(np.i0(4.0) - 1)  # the series of the modified Bessel function
    assert LAWS[3].sum() == pytest.approx(1 / 3)


def test_selection_is_largest_where_half_is_known():
    def factor(mean, variance):
        return _selection(Belief(np.array([9.0, mean]), np.array([9.0, variance]), None, {}))

    assert factor(1.0, 1.0) == pytest.approx(1 + SELECTION / 4)
    assert factor(0.0, 1.0) == 1.0
    assert factor(10.0, 1.0) < factor(3.0, 1.0) < factor(1.0, 1.0)
