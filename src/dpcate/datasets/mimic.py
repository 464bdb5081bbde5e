"""MIMIC-III as in the paper, from the HDF5 file of MIMIC-Extract: does ventilation change the red blood cell count?

One row per subject: a random hour of the stay, each covariate averaged over the ten hours before it, ventilation in
that hour, and the red blood cell count averaged over the ten hours after it. Where the paper drops outliers by
percentiles of the rows, public bounds clip them; where it adapts the outcome to respond more to ventilation, in a way
that it does not print, the measured one is kept. Subjects with a missing value stay, as NaN: a fit counts them as
absent, while dropping them would let one subject change the public number of rows.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpcate.datasets.dataset import INDICATOR, Dataset, whole_seed
from dpcate.datasets.pandas_hdf import fixed_columns, fixed_rows, table_columns
from dpcate.errors import DataError
from dpcate.extras import require
from dpcate.schema import Number, Outcome, Schema

HOURS = 10
RBC = "red blood cell count"
VITALS = {
    "heart rate": Number(0, 250, unit="1/min"),
    "sodium": Number(100, 180, unit="mmol/L"),
    RBC: Number(0, 8, unit="10⁶/µL"),
    "glucose": Number(0, 1000, unit="mg/dL"),
    "hematocrit": Number(0, 75, unit="%"),
    "respiratory rate": Number(0, 80, unit="1/min"),
}
NOTE = (
    "The bounds are what is clinically possible; ages above 89, which MIMIC-III hides, count as 90. None comes from "
    "the rows."
)

_FOREIGN = (OSError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, ValueError, MemoryError)


def mimic_extract(path: str | Path, seed: int) -> Dataset:
    """The subjects of MIMIC-Extract's `all_hourly_data.h5`; `seed` draws the hour of each. The effect is not known.

    A subject's hour depends on the seed and the subject's own number alone, never on who else is in the file.
    """
    seed, path, h5py = whole_seed(seed), Path(path), require("h5py", "mimic")
    try:
        with h5py.File(path, "r") as file:
            return Dataset.from_table(_rows(file, seed), mimic_schema(), note=NOTE)
    except DataError as error:
        problem = f": {error}"
    except FileNotFoundError:
        problem = ": it does not exist"
    except _FOREIGN:
        problem = "; is it a whole file?"
    raise DataError(f"the file {path.name!r} cannot be read as MIMIC-Extract's HDF5{problem}")


def mimic_schema() -> Schema:
    return Schema(
        covariates={**VITALS, "age": Number(15, 90, unit="years"), "male": INDICATOR},
        treatment="vent",
        outcome=Outcome(f"{RBC} after", low=0, high=8, unit="10⁶/µL"),
    )


def _rows(file: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
    """One row per subject, by column name."""
    patients = table_columns(file["patients"], ["subject_id", "icustay_id", "age", "gender"])
    subjects, first = np.unique(patients["subject_id"], return_index=True)
    stays, gender = patients["icustay_id"][first], patients["gender"][first]

    hourly = file["vitals_labs_mean" if "vitals_labs_mean" in file else "vitals_labs"]
    vitals, treated = _Hours(hourly, stays), _Hours(file["interventions"], stays)
    moment = _moments(subjects, vitals.last_hour(), seed)
    measured = fixed_columns(hourly, [(name, "mean") for name in VITALS])
    return {
        **{name: vitals.average(measured[name, "mean"], moment - HOURS, moment - 1) for name in VITALS},
        "age": patients["age"][first],
        "male": np.where(gender == "M", 1.0, np.where(gender == "F", 0.0, np.nan)),
        "vent": treated.average(fixed_columns(file["interventions"], ["vent"])["vent"], moment, moment),
        f"{RBC} after": vitals.average(measured[RBC, "mean"], moment + 1, moment + HOURS),
    }


def _moments(subjects: np.ndarray, last_hour: np.ndarray, seed: int) -> np.ndarray:
    """An hour of each stay with ten before it and one after it; NaN where the stay is too short."""
    drawn = np.array([np.random.default_rng([seed, int(subject)]).random() for subject in subjects])
    choices = last_hour - HOURS
    return np.where(choices >= 1, HOURS + np.floor(drawn * choices), np.nan)


class _Hours:
    """The rows of an hourly table: to which of the stays they belong (−1: to none), and at which hour."""

    def __init__(self, group: Any, stays: np.ndarray) -> None:
        rows, order = fixed_rows(group), np.argsort(stays)
        place = np.minimum(np.searchsorted(stays, rows["icustay_id"], sorter=order), len(stays) - 1)
        self.stay = np.where(stays[order][place] == rows["icustay_id"], order[place], -1)
        self.hour, self.stays = rows["hours_in"], len(stays)

    def last_hour(self) -> np.ndarray:
        last = np.full(self.stays, -1)
        np.maximum.at(last, self.stay[self.stay >= 0], self.hour[self.stay >= 0])
        return last

    def average(self, values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Per stay, the mean of what was measured from hour `start` to hour `end`; NaN where nothing was."""
        inside = (start[self.stay] <= self.hour) & (self.hour <= end[self.stay])
        used = inside & (self.stay >= 0) & np.isfinite(values)
        total = np.bincount(self.stay[used], weights=values[used], minlength=self.stays)
        count = np.bincount(self.stay[used], minlength=self.stays)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
