"""What intervals add for columns half chosen, and what squares of columns are expected to be."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpcate.regress.columns import LARGEST_SQUARE, cut_square
from dpcate.regress.moments.belief import Belief
from dpcate.regress.moments.stage import SELECTION, WITHIN, _selection


@pytest.mark.parametrize("variance", [1e-3, 0.3, 1.0, 4.0, 60.0])
def test_cut_squares_are_what_integration_says(variance):
    edge, sd = np.sqrt(LARGEST_SQUARE), np.sqrt(variance)
    within = quad(lambda z: z**2 * norm.pdf(z, scale=sd), -edge, edge, points=[-sd, 0.0, sd], limit=200)[0]
    assert cut_square(np.array([variance]))[0] == pytest.approx(within + LARGEST_SQUARE * 2 * norm.sf(edge, scale=sd))


def test_selection_is_largest_where_half_is_known():
    def factor(mean, variance):
        return _selection(Belief(np.array([9.0, mean]), np.array([9.0, variance]), np.ones((1, 1, 1)), None))

    assert factor(1.0, 1.0) == pytest.approx(WITHIN + SELECTION / 4)
    assert factor(0.0, 1.0) == WITHIN
    assert factor(10.0, 1.0) < factor(3.0, 1.0) < factor(1.0, 1.0)
