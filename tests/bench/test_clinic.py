import numpy as np
import pytest

from dpcate.bench.clinic import clinic_trial
from dpcate.bench.problems import TEST_ROWS


@pytest.mark.parametrize("seed", range(6))
def test_a_trial_keeps_to_what_it_declares(seed):
    trial = clinic_trial(seed, 500, 30)
    assert trial.X.shape == (500, 30)
    assert trial.points.shape == (TEST_ROWS, 30)
    for column, declared in zip(np.vstack([trial.X, trial.points]).T, trial.schema.covariates.values(), strict=True):
        assert declared.low <= column.min()
        assert column.max() <= declared.high
    outcome = trial.schema.outcome
    assert np.mean((outcome.low > trial.Y) | (outcome.high < trial.Y)) < 0.005
    assert 0.05 < trial.T.mean() < 0.8
    assert trial.tau.std() > 0.1


def test_trials_differ_by_seed_and_repeat_themselves():
    first, again, other = clinic_trial(1, 200, 10), clinic_trial(1, 200, 10), clinic_trial(2, 200, 10)
    np.testing.assert_array_equal(first.Y, again.Y)
    assert not np.array_equal(first.Y, other.Y)


def test_a_single_column_is_enough():
    assert np.isfinite(clinic_trial(3, 100, 1).tau).all()
