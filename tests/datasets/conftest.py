import numpy as np
import pytest

from dpcate.data import read_rows
from dpcate.schema import Category


@pytest.fixture
def assert_keeps_its_schema():
    """Shapes fit, every row is usable, and a clip would move no covariate and hardly an outcome."""

    def check(data):
        schema = data.schema
        assert data.X.shape == (len(data.Y), len(schema.covariates))
        assert set(np.unique(data.T)) == {0.0, 1.0}
        assert data.note
        for name, column in zip(schema.covariates, data.X.T, strict=True):
            declared = schema.covariates[name]
            if isinstance(declared, Category):
                assert set(np.unique(column)) <= set(declared.levels), name
            else:
                assert declared.low <= column.min() <= column.max() <= declared.high, name
        assert np.mean(np.clip(data.Y, schema.outcome.low, schema.outcome.high) != data.Y) < 0.001
        assert read_rows(schema, data.Y, data.T, data.X).present.all()

    return check
