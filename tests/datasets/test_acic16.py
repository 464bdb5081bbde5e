import numpy as np
import pytest

from dpcate import datasets
from dpcate.datasets.acic16 import acic16_schema
from dpcate.errors import InputError


@pytest.mark.peers
@pytest.mark.parametrize("instance", range(1, 11))
def test_every_instance_keeps_its_schema_and_knows_its_effect(instance, assert_keeps_its_schema):
    data = datasets.acic16(instance)
    assert data.X.shape == (4802, 79)
    assert_keeps_its_schema(data)
    residual = data.Y - np.where(data.T == 1, data.outcome_treated, data.outcome_control)
    assert abs(residual.mean()) < 0.1  # noise of the simulation, which has mean zero
    assert data.tau.std() > 1 or instance in (2, 3)  # the two with a constant effect


def test_bounds_are_the_same_round_numbers_for_every_instance():
    schema = acic16_schema()
    assert schema.width == 79
    assert all(covariate.low % 1 == covariate.high % 1 == 0 for covariate in schema.covariates.values())


@pytest.mark.parametrize("instance", [0, 11, 1.5, True, "1"])
def test_other_instances_are_refused(instance):
    with pytest.raises(InputError, match="1 to 10"):
        datasets.acic16(instance)
