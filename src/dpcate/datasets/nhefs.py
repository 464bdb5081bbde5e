"""NHEFS: does quitting smoking make people gain weight? 1,566 smokers of a national survey, 1971 and 1982.

The data of Hernán and Robins, "Causal Inference: What If", with their confounders; those without a weight in 1982 are
left out, as there.
"""

from dpcate.datasets.dataset import INDICATOR, Dataset
from dpcate.extras import require
from dpcate.schema import Category, Number, Outcome, Schema

NOTE = (
    "Levels and the ages 25 to 74 are those of the survey's codebook; the other bounds are what is possible for "
    "adults. None is the range of the rows, though their rough size was known."
)


def nhefs() -> Dataset:
    """Weight change in kg by whether one quit smoking; the effect is not known."""
    bunch = require("causallib.datasets", "peers").load_nhefs(augment=False, onehot=False)
    return Dataset.from_table(bunch.X.assign(qsmk=bunch.a, wt82_71=bunch.y), nhefs_schema(), note=NOTE)


def nhefs_schema() -> Schema:
    return Schema(
        covariates={
            "active": Category([0, 1, 2]),  # very, moderately, not
            "age": Number(25, 74, unit="years"),
            "education": Category([1, 2, 3, 4, 5]),  # from 8th grade or less to college or more
            "exercise": Category([0, 1, 2]),  # much, moderate, little
            "race": INDICATOR,
            "sex": INDICATOR,
            "smokeintensity": Number(0, 100, unit="cigarettes per day"),
            "smokeyrs": Number(0, 70, unit="years"),
            "wt71": Number(30, 200, unit="kg"),
        },
        treatment="qsmk",
        outcome=Outcome("wt82_71", low=-60, high=60, unit="kg"),
    )
