import numpy as np
import pytest

from dpcate.bench.interplay import correlated_trial, product_trial


@pytest.mark.parametrize(("make", "low", "high"), [(correlated_trial, 0.7, 0.85), (product_trial, -0.12, 0.12)])
def test_columns_are_as_correlated_as_they_should_be(make, low, high):
    trial = make(1)
    apart = np.corrcoef(trial.X.T)[np.triu_indices(10, 1)]
    assert low < apart.min() < apart.max() < high
    assert (trial.schema.outcome.low < trial.Y.min()) & (trial.Y.max() < trial.schema.outcome.high)


def test_most_of_an_effect_of_products_is_no_sum_of_columns():
    trial = product_trial(1)
    sums = np.column_stack([trial.points**k for k in range(5)])
    rest = trial.tau - sums @ np.linalg.lstsq(sums, trial.tau, rcond=None)[0]
    assert 0.5 < rest.var() / trial.tau.var() < 0.9
