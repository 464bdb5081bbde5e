"""ACTG 175: zidovudine alone against three other therapies in 2,139 people with HIV, randomised (Hammer et al. 1996).

lifelines ships the file without a loader for it.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dpcate.datasets.dataset import INDICATOR, Dataset
from dpcate.extras import require
from dpcate.schema import Category, Number, Outcome, Schema

PROPENSITY = 0.75  # three of four arms of equal size
NOTE = (
    "Ages from 12, Karnofsky scores from 70 and the strata are the trial's protocol; the other bounds are what is "
    "possible for adults and for cell counts. None is the range of the rows, though their rough size was known."
)


def actg175() -> Dataset:
    """CD4 cells after 20 weeks by therapy; the propensity is known by design, the effect is not."""
    file = Path(require("lifelines.datasets", "peers").__file__).parent / "ACTG175.csv"
    data = Dataset.from_table(file, actg175_schema(), note=NOTE)
    return replace(data, propensity=np.full(len(data.Y), PROPENSITY))


def actg175_schema() -> Schema:
    return Schema(
        covariates={
            "age": Number(12, 90, unit="years"),
            "wtkg": Number(30, 200, unit="kg"),
            "hemo": INDICATOR,
            "homo": INDICATOR,
            "drugs": INDICATOR,
            "karnof": Number(70, 100),
            "oprior": INDICATOR,
            "z30": INDICATOR,
            "preanti": Number(0, 4000, unit="days"),
            "race": INDICATOR,
            "gender": INDICATOR,
            "strat": Category([1, 2, 3]),  # no antiretroviral therapy before, up to 52 weeks, more
            "symptom": INDICATOR,
            "cd40": Number(0, 1500, unit="cells/mm³"),
            "cd80": Number(0, 6000, unit="cells/mm³"),
        },
        treatment="treat",
        outcome=Outcome("cd420", low=0, high=1500, unit="cells/mm³"),
    )
