import numpy as np
import pytest

from dpcate import datasets
from dpcate.errors import InputError


@pytest.mark.peers
def test_covariates_are_the_rows_of_econml_in_their_own_units():
    from econml.data.dgps import ihdp_surface_B

    data = datasets.ihdp(3)
    outcome, treated, standardised, effect = ihdp_surface_B(random_state=3)
    assert np.array_equal(data.Y, outcome)
    assert np.array_equal(data.T, treated)
    assert np.array_equal(data.tau, effect)
    own_units = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    theirs = standardised[:, 1:] - standardised[:, 1:].mean(axis=0)
    assert np.allclose(own_units, theirs / theirs.std(axis=0))


@pytest.mark.peers
def test_rows_keep_the_schema_and_few_outcomes_of_any_draw_are_clipped(assert_keeps_its_schema):
    assert_keeps_its_schema(datasets.ihdp(0))
    outcome = datasets.ihdp(0).schema.outcome
    draws = np.concatenate([datasets.ihdp(seed).Y for seed in range(20)])
    assert np.mean((draws < outcome.low) | (draws > outcome.high)) < 1e-3


@pytest.mark.peers
def test_the_average_effect_on_the_treated_is_four():
    data = datasets.ihdp(7)
    assert data.tau[data.T == 1].mean() == pytest.approx(4)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, True, None])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InputError, match="seed"):
        datasets.ihdp(seed)
