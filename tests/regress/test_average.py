import numpy as np
import pytest

import dpcate
from dpcate import PrivateCATE
from dpcate.errors import InputError

MEAN = (np.exp(2) - 1) / 2 + 3 * (1 - np.cos(4)) / 4  # of Dataset 1's effect over the unit square


def fitted(seed, epsilon=2.0, **settings):
    data = dpcate.datasets.synthetic(1, 3000, seed=4000 + seed)
    model = PrivateCATE(data.schema, epsilon=epsilon, delta=1e-5, random_state=seed, **settings)
    return model.fit(data.Y, data.T, X=data.X)


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_the_interval_of_the_average_covers(epsilon):
    """Of 60 intervals at 95%, fewer than 48 cover with a chance below 1e-8, if they are what they claim."""
    covered = 0
    for seed in range(60):
        low, high = fitted(seed, epsilon).ate_interval()
        covered += low <= MEAN <= high
    assert covered >= 48


@pytest.mark.parametrize("settings", [{"learner": "dr"}, {"second_stage": "features"}, {"split": "crossfit"}])
def test_every_learner_and_function_has_an_average(settings):
    assert abs(fitted(0, 10.0, **settings).ate() - MEAN) < 0.4


def test_the_average_is_paid_for_and_survives_the_file(tmp_path):
    release = fitted(1).release_
    assert {"average effect", "average effect: sizes"} <= {charge.name for charge in release.charges}
    release.save(tmp_path / "release.json")
    loaded = dpcate.Release.load(tmp_path / "release.json")
    assert loaded.ate() == release.ate()
    assert loaded.ate_interval(0.2) == release.ate_interval(0.2)
    assert loaded.ate_interval(0.2)[0] < loaded.ate() < loaded.ate_interval(0.2)[1]


def test_a_release_without_an_average_says_so():
    release = fitted(2, second_stage="kernel").release_
    with pytest.raises(InputError, match="no average"):
        release.ate()
    with pytest.raises(InputError, match="alpha"):
        fitted(2).ate_interval(alpha=2)
