"""A file with the layout of MIMIC-Extract's `all_hourly_data.h5`, written as that pipeline writes it: by pandas."""

import warnings

import numpy as np
import pandas as pd

IDS = ["subject_id", "hadm_id", "icustay_id"]
VARIABLES = ["glucose", "heart rate", "hematocrit", "red blood cell count", "respiratory rate", "sodium", "temperature"]
TYPICAL = np.array([140.0, 86.0, 31.0, 3.5, 19.0, 139.0, 37.0])
INTERVENTIONS = ["vent", "vaso", "adenosine", "colloid_bolus", "nivdurations"]


def frames(subjects=60, seed=0):
    """The pipeline's tables: patients, vitals_labs, interventions, c_df."""
    rng = np.random.default_rng(seed)
    ids = pd.DataFrame(
        {
            "subject_id": np.arange(3, 3 + subjects),
            "hadm_id": rng.permutation(subjects) + 100_000,
            "icustay_id": rng.permutation(subjects) + 200_000,
        }
    )
    hours = rng.integers(12, 60, subjects)
    patients = ids.assign(
        gender=pd.Categorical(rng.choice(["F", "M"], subjects)),
        ethnicity=pd.Categorical(rng.choice(["ASIAN", "BLACK", "WHITE"], subjects)),
        age=np.where(rng.random(subjects) < 0.1, 300.0, rng.uniform(15, 89, subjects)),
        insurance=rng.choice(["Medicare", "Private"], subjects),
        admittime=pd.to_datetime("2101-10-20") + pd.to_timedelta(rng.integers(0, 10**6, subjects), unit="min"),
        diagnosis_at_admission="SEPSIS",
        fullcode_first=1.0,
        mort_icu=rng.integers(0, 2, subjects),
        los_icu=hours / 24,
        max_hours=hours,
    ).set_index(IDS)
    hourly = ids.loc[ids.index.repeat(hours + 1)]
    hourly = hourly.assign(hours_in=hourly.groupby("subject_id").cumcount())
    index = pd.MultiIndex.from_frame(hourly)
    columns = pd.MultiIndex.from_product(
        [VARIABLES, ["count", "mean", "std"]], names=["LEVEL2", "Aggregation Function"]
    )
    means = TYPICAL * rng.uniform(0.7, 1.3, (len(index), len(VARIABLES)))
    means[rng.random(means.shape) < 0.5] = np.nan
    values = np.stack([np.isfinite(means).astype(float), means, np.full_like(means, np.nan)], axis=2)
    vitals = pd.DataFrame(values.reshape(len(index), -1), index=index, columns=columns)
    switched = rng.integers(0, 2, (len(index), len(INTERVENTIONS)))
    interventions = pd.DataFrame(switched, index=index, columns=INTERVENTIONS)
    codes = pd.DataFrame({"icd9_codes": [["99591", "5849"]] * subjects}, index=patients.index)
    return {"patients": patients, "vitals_labs": vitals, "interventions": interventions, "c_df": codes}


def write(path, tables):
    """The file, with the format of each table and the table of means as in the pipeline."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables["vitals_labs"].to_hdf(path, key="vitals_labs")
        tables["interventions"].to_hdf(path, key="interventions")
        tables["c_df"].to_hdf(path, key="c_df")
        tables["patients"].to_hdf(path, key="patients", format="table")
        means = tables["vitals_labs"].columns.get_level_values(-1) == "mean"
        tables["vitals_labs"].loc[:, means].to_hdf(path, key="vitals_labs_mean")
    return path
