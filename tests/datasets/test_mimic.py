"""MIMIC-III from generated files of exactly MIMIC-Extract's layout."""

import os
import pickle
import shutil
import sys

import h5py
import mimic_file
import numpy as np
import pandas as pd
import pytest

import dpcate
from dpcate import datasets
from dpcate.datasets.mimic import HOURS, RBC, VITALS, _moments, mimic_schema
from dpcate.datasets.pandas_hdf import names_in_pickle
from dpcate.errors import DataError, InputError


@pytest.fixture(scope="module")
def tables():
    return mimic_file.frames()


@pytest.fixture(scope="module")
def path(tables, tmp_path_factory):
    return mimic_file.write(tmp_path_factory.mktemp("mimic") / "all_hourly_data.h5", tables)


@pytest.fixture
def copy(path, tmp_path):
    return shutil.copy(path, tmp_path / "copy.h5")


def by_hand(tables, seed):
    """The definition in pandas, one subject at a time."""
    rows = []
    for (subject, *stay), person in tables["patients"].iterrows():
        vitals = tables["vitals_labs"].xs("mean", axis=1, level=1).loc[(subject, *stay)]
        moment = _moments(np.array([subject]), np.array([vitals.index.max()]), seed)[0]
        before, after = vitals.loc[moment - HOURS : moment - 1], vitals.loc[moment + 1 : moment + HOURS]
        vent = tables["interventions"].loc[(subject, *stay), "vent"].loc[moment]
        means = [before[name].mean() for name in VITALS]
        rows.append([*means, person["age"], float(person["gender"] == "M"), vent, after[RBC].mean()])
    return np.array(rows, dtype=float)


def test_rows_are_as_defined(tables, path):
    data = datasets.mimic_extract(path, seed=5)
    assert np.allclose(np.column_stack([data.X, data.T, data.Y]), by_hand(tables, 5), equal_nan=True)
    assert data.tau is None
    assert "None comes from the rows" in data.note


def test_one_row_per_subject_and_incomplete_ones_stay(tables, path):
    data = datasets.mimic_extract(path, seed=5)
    assert len(data.Y) == len(tables["patients"])
    estimator = dpcate.PrivateCATE(data.schema, epsilon=1.0, delta=1e-6, random_state=0)
    assert np.isfinite(estimator.fit(data.Y, data.T, X=data.X).effect(np.nan_to_num(data.X[:3], nan=1.0))).all()


def test_the_sampled_hour_leaves_ten_before_it_and_one_after_it():
    last = np.arange(0, 60)
    hours = np.array([_moments(np.arange(60), last, seed) for seed in range(50)])
    assert np.isnan(hours[:, last <= HOURS]).all()
    long = last > HOURS
    assert (hours[:, long] >= HOURS).all()
    assert (hours[:, long] < last[long]).all()
    assert set(hours[:, HOURS + 2]) == {10.0, 11.0}


def test_nobodys_row_depends_on_who_else_is_in_the_file(tables, path, tmp_path):
    gone = tables["patients"].index[7][0]
    others = {name: frame.drop(gone, level="subject_id") for name, frame in tables.items()}
    less = datasets.mimic_extract(mimic_file.write(tmp_path / "less.h5", others), seed=5)
    whole = datasets.mimic_extract(path, seed=5)
    assert np.array_equal(less.X, np.delete(whole.X, 7, axis=0), equal_nan=True)
    assert np.array_equal(less.Y, np.delete(whole.Y, 7), equal_nan=True)


def test_a_second_stay_of_a_subject_is_ignored(tables, path, tmp_path):
    def again(frame):
        stay = frame.loc[[tables["patients"].index[0][0]]].reset_index()
        return pd.concat([frame, stay.assign(icustay_id=999_999).set_index(frame.index.names)])

    doubled = mimic_file.write(tmp_path / "doubled.h5", {name: again(frame) for name, frame in tables.items()})
    once, twice = datasets.mimic_extract(path, seed=5), datasets.mimic_extract(doubled, seed=5)
    assert np.array_equal(once.X, twice.X, equal_nan=True)


def test_text_may_be_stored_without_categories(tables, path, tmp_path):
    plain = {**tables, "patients": tables["patients"].astype({"gender": object})}
    once, other = (
        datasets.mimic_extract(place, seed=5) for place in (path, mimic_file.write(tmp_path / "t.h5", plain))
    )
    assert np.array_equal(once.X, other.X, equal_nan=True)


def test_the_table_with_counts_serves_where_the_one_of_means_was_removed(path, copy):
    with h5py.File(copy, "a") as file:
        del file["vitals_labs_mean"]
    assert np.array_equal(
        datasets.mimic_extract(copy, seed=1).X, datasets.mimic_extract(path, seed=1).X, equal_nan=True
    )


def test_bounds_are_public_and_hidden_ages_are_clipped(path):
    assert mimic_schema().covariates["age"].high == 90
    assert np.nanmax(datasets.mimic_extract(path, seed=0).X[:, 6]) == 300


def test_nothing_is_unpickled(path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    assert len(datasets.mimic_extract(path, seed=0).Y)


class Payload:
    def __reduce__(self):
        return os.abort, ()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_names_are_read_from_every_protocol_and_payloads_are_refused(protocol):
    assert names_in_pickle(pickle.dumps(["age", "los_icu"], protocol)) == ["age", "los_icu"]
    with pytest.raises(DataError, match="pickled object"):
        names_in_pickle(pickle.dumps(["age", Payload()], protocol))


def test_names_written_by_python_2_are_read():
    assert names_in_pickle(b"(lp1\nS'age'\np2\naS'los_icu'\np3\na.") == ["age", "los_icu"]


def refused(path, match):
    with pytest.raises(DataError, match=match) as caught:
        datasets.mimic_extract(path, seed=0)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_payload_in_the_file_is_refused(copy):
    with h5py.File(copy, "a") as file:
        attributes = file["patients/table"].attrs
        attributes["values_block_0_kind"] = np.bytes_(pickle.dumps(["age", Payload()], 0))
    refused(copy, "pickled object")


def test_pickled_columns_are_refused(tables, tmp_path):
    vent = tables["interventions"].astype({"vent": object})
    refused(mimic_file.write(tmp_path / "objects.h5", {**tables, "interventions": vent}), "pickled objects")


@pytest.mark.parametrize(
    ("table", "column", "match"),
    [
        ("vitals_labs", "sodium", "'vitals_labs_mean' lacks the columns sodium mean"),
        ("interventions", "vent", "'interventions' lacks the columns vent"),
        ("patients", "age", "'patients' lacks the columns age"),
    ],
)
def test_missing_columns_are_named(tables, tmp_path, table, column, match):
    refused(mimic_file.write(tmp_path / "less.h5", {**tables, table: tables[table].drop(columns=column)}), match)


@pytest.mark.parametrize("table", ["patients", "interventions"])
def test_a_missing_table_is_refused(copy, table):
    with h5py.File(copy, "a") as file:
        del file[table]
    refused(copy, "'copy.h5' cannot be read as MIMIC-Extract's HDF5")


@pytest.mark.parametrize("content", [b"", b"subject_id,age\n3,40\n", b"\x89HDF\r\n\x1a\n" + bytes(200)])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "wrong.h5").write_bytes(content)
    refused(tmp_path / "wrong.h5", "cannot be read as MIMIC-Extract's HDF5")


def test_a_cut_file_and_a_missing_one_are_refused(path, tmp_path):
    content = path.read_bytes()
    (tmp_path / "cut.h5").write_bytes(content[: len(content) // 2])
    refused(tmp_path / "cut.h5", "is it a whole file")
    refused(tmp_path / "none.h5", "does not exist")


def test_the_missing_extra_and_a_bad_seed_are_named(path, monkeypatch):
    with pytest.raises(InputError, match="seed"):
        datasets.mimic_extract(path, seed=None)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"^this needs h5py: pip install 'dpcate\[mimic\]'$"):
        datasets.mimic_extract(path, seed=0)
