import numpy as np
import pytest

from dpcate import datasets
from dpcate.errors import InputError


@pytest.mark.parametrize(("which", "width"), [(1, 2), (2, 30)])
def test_shapes_truth_and_bounds(which, width):
    data = datasets.synthetic(which, 20_000, seed=5)
    assert data.X.shape == (20_000, width)
    assert data.schema.width == width
    last = 0 if which == 1 else 1
    assert np.allclose(data.tau, np.exp(2 * data.X[:, 0]) + 3 * np.sin(4 * data.X[:, last]))
    assert data.Y.min() >= data.schema.outcome.low
    assert data.Y.max() <= data.schema.outcome.high
    assert abs(data.T.mean() - data.propensity.mean()) < 6 * 0.5 / np.sqrt(20_000)
    residual = data.Y - np.where(data.T == 1, data.outcome_treated, data.outcome_control)
    assert np.abs(residual).max() <= 1
    mixture = data.propensity * data.outcome_treated + (1 - data.propensity) * data.outcome_control
    assert np.allclose(data.outcome, mixture)


def test_dataset_2_keeps_both_arms():
    data = datasets.synthetic(2, 5000, seed=1)
    assert 0.5 < data.T.mean() < 0.95
    used = np.linalg.lstsq(data.X - 0.5, data.propensity - data.propensity.mean(), rcond=None)[0]
    assert np.abs(used[5:]).max() < 1e-2 < np.abs(used[:5]).max()


def test_the_same_seed_gives_the_same_rows():
    assert np.array_equal(datasets.synthetic(1, 50, seed=3).Y, datasets.synthetic(1, 50, seed=3).Y)
    assert not np.array_equal(datasets.synthetic(1, 50, seed=3).Y, datasets.synthetic(1, 50, seed=4).Y)


@pytest.mark.parametrize(("which", "n"), [(3, 10), (1, 0), (1, 2.5), (1, True)])
def test_bad_calls_are_refused(which, n):
    with pytest.raises(InputError):
        datasets.synthetic(which, n, seed=0)
