import numpy as np
import pytest

from dpcate.errors import ReleaseError
from dpcate.models import PointsModel

MODEL = PointsModel(points=[[0.0, 1.0], [0.25, 1 / 3]], values=[1.5, -2.0], sds=[0.1, 0.2])


def test_it_answers_at_its_points_in_any_order():
    x = np.array([[0.25, 1 / 3], [0.0, 1.0], [0.25, 0.333333333333333]])
    assert np.array_equal(MODEL.value(x), [-2.0, 1.5, -2.0])
    assert np.array_equal(MODEL.sd(x, x), [0.2, 0.1, 0.2])


def test_any_other_point_raises():
    with pytest.raises(ReleaseError, match="declared points only"):
        MODEL.value(np.array([[0.0, 0.999]]))


def test_without_an_honest_sd_there_is_no_interval():
    with pytest.raises(ReleaseError, match="no intervals"):
        PointsModel(points=[[0.5]], values=[1.0], sds=None).sd(np.array([[0.5]]), np.zeros((1, 1)))


@pytest.mark.parametrize(
    "parts",
    [
        {"points": [[0.0], [0.0, 1.0]], "values": [1.0, 2.0], "sds": None},
        {"points": [[0.0]], "values": [1.0, 2.0], "sds": None},
        {"points": [[0.0]], "values": [np.nan], "sds": None},
        {"points": [[0.0]], "values": [1.0], "sds": [-1.0]},
        {"points": [[0.0]], "values": [1.0], "sds": [1.0, 1.0]},
        {"points": [], "values": [], "sds": None},
        {"points": [[]], "values": [1.0], "sds": None},
    ],
)
def test_malformed_models_are_refused(parts):
    with pytest.raises(ReleaseError):
        PointsModel(**parts)
