"""Real studies whose effect nobody knows: NHEFS, 401(k), ACTG 175."""

import pytest

from dpcate import datasets

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(
    ("load", "shape", "treated"),
    [
        (datasets.nhefs, (1566, 9), 403),
        (datasets.pension_401k, (9275, 6), 3637),
        (datasets.actg175, (2139, 15), 1607),
    ],
)
def test_rows_keep_the_written_schema(load, shape, treated, assert_keeps_its_schema):
    data = load()
    assert_keeps_its_schema(data)
    assert data.X.shape == shape
    assert data.T.sum() == treated
    assert data.tau is None


def test_the_trial_knows_its_propensity():
    data = datasets.actg175()
    assert abs(data.T.mean() - data.propensity[0]) < 0.01


def test_what_quitting_does_to_weight_is_as_in_the_book():
    """Section 12.1 of "What If": 4.5 kg against 2.0 kg."""
    data = datasets.nhefs()
    assert data.Y[data.T == 1].mean() == pytest.approx(4.5, abs=0.05)
    assert data.Y[data.T == 0].mean() == pytest.approx(2.0, abs=0.05)
