"""Rows filled with recognisable numbers and strings: none of them may appear anywhere, on success or on failure."""

import logging
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest

import dpcate
from dpcate import Category, Number, Outcome, PrivateCATE, Schema

NUMBERS = ["73.19258", "41.77013", "6.283749", "987654.321", "-55512.25"]
WORDS = ["XQZSENTINEL", "patient-0xBEEF"]
SENTINELS = [*NUMBERS, *WORDS, *(number.replace(".", "") for number in NUMBERS)]

SCHEMA = Schema(
    covariates={"age": Number(18, 100), "ward": Category(["a", "b"])},
    treatment="treated",
    outcome=Outcome("y", low=0.0, high=10.0),
    person="id",
)


def rows(n=60):
    """Values inside the bounds, outside of them, and cells that cannot be parsed."""
    return {
        "age": ["73.19258", "41.77013", "987654.321", "XQZSENTINEL"] * (n // 4),
        "ward": ["a", "b", "XQZSENTINEL", "a"] * (n // 4),
        "treated": ["0", "1", "1", "XQZSENTINEL"] * (n // 4),
        "y": ["6.283749", "-55512.25", "6.283749", "patient-0xBEEF"] * (n // 4),
        "id": [f"patient-0xBEEF-{i}" for i in range(n)],
        "XQZunused": ["XQZSENTINEL"] * n,
    }


def assert_clean(text):
    for sentinel in SENTINELS:
        assert sentinel not in text


def write_all(folder, columns):
    frame = pd.DataFrame(columns)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    (folder / "rows.txt").write_bytes((folder / "rows.csv").read_bytes())
    (folder / "ragged.csv").write_text((folder / "rows.csv").read_text() + "XQZSENTINEL,73.19258\n\xff" * 3)
    (folder / "broken.parquet").write_bytes((folder / "rows.parquet").read_bytes()[:-300])
    frame.drop(columns="y").to_csv(folder / "missing.csv", index=False)
    frame.head(4).to_csv(folder / "few.csv", index=False)
    frame.assign(age=pd.Timestamp("2020-01-01")).to_parquet(folder / "dates.parquet")
    SCHEMA.save(folder / "schema.toml")
    pd.DataFrame({"age": [30, 40], "ward": ["a", "b"]}).to_csv(folder / "points.csv", index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sentinel")
    write_all(place, rows())
    return place


def run(folder, *arguments):
    result = subprocess.run(
        [sys.executable, "-m", "dpcate", *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert_clean(result.stdout)
    assert_clean(result.stderr)
    return result


FIT = ["fit", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "--data"]


@pytest.mark.parametrize("data", ["rows.csv", "rows.parquet", "ragged.csv"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_nothing_of_a_row_leaves_a_successful_run(folder, data, neighbours):
    assert run(folder, *FIT, data, "--neighbours", neighbours, "--out", "release.json").returncode == 0
    assert run(folder, "effect", "release.json", "--at", "points.csv", "--out", "effects.csv").returncode == 0
    assert run(folder, "effect", "release.json", "--at", "points.csv").returncode == 0
    assert run(folder, "report", "release.json", "--out", "report.html").returncode == 0
    for name in ("release.json", "effects.csv", "report.html"):
        assert_clean((folder / name).read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        [*FIT, "rows.txt"], [*FIT, "broken.parquet"], [*FIT, "missing.csv"], [*FIT, "few.csv"], [*FIT, "dates.parquet"],
        [*FIT, "rows.csv", "--out", "no/such/folder.json"], [*FIT, "rows.csv", "--learner", "none"],
        ["fit", "--schema", "rows.csv", "--data", "rows.csv", "--epsilon", "1", "--delta", "1e-6"],
        ["effect", "rows.csv", "--at", "points.csv"], ["effect", "rows.parquet", "--at", "points.csv"],
        ["report", "rows.csv"], [*FIT, "rows.csv", "--epsilon", "0"],
    ],
)  # fmt: skip
def test_nothing_of_a_row_leaves_a_refused_run(folder, arguments):
    assert run(folder, *arguments).returncode == 2


def hostile_frames():
    columns = {name: list(cells) for name, cells in rows().items()}
    yield pd.DataFrame(columns)
    mixed = pd.DataFrame(columns).astype(object)
    mixed.loc[0, "age"] = 73.19258
    mixed.loc[1, "y"] = b"XQZSENTINEL"
    yield mixed
    yield pd.DataFrame(columns).drop(columns="treated")
    yield pd.DataFrame(columns).head(3)
    yield {**columns, "y": columns["y"][:-1]}
    yield {**columns, "y": [["XQZSENTINEL"]] * 60}
    yield [["XQZSENTINEL", 73.19258]]
    yield "XQZ.csv"


@pytest.mark.parametrize("position", range(8))
def test_exceptions_logs_warnings_and_reprs_are_clean(position, caplog, capsys):
    frame = list(hostile_frames())[position]
    estimator = PrivateCATE(SCHEMA, epsilon=1.0, delta=1e-6)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(table=frame)
            assert_clean(estimator.release_.to_json().decode())
            assert_clean(repr(estimator.release_) + repr(vars(estimator)))
        except dpcate.errors.DpcateError as error:
            while error is not None:
                assert_clean(str(error) + repr(error))
                shown = "".join(traceback.format_exception_only(error))
                assert_clean(shown)
                error = error.__cause__ or error.__context__
    assert_clean(caplog.text)
    assert_clean("".join(str(warning.message) for warning in caught))
    captured = capsys.readouterr()
    assert_clean(captured.out + captured.err)


def test_released_numbers_are_not_the_numbers_of_a_lonely_row():
    """One person at the corner of the schema among empty rows: no released number equals theirs."""
    columns = {
        "age": [np.nan] * 59 + [73.19258],
        "ward": ["a"] * 60,
        "treated": [1] * 60,
        "y": [6.283749] * 60,
    }
    columns["id"] = list(range(60))
    release = PrivateCATE(SCHEMA, epsilon=1.0, delta=1e-6).fit(table=columns).release_
    assert_clean(release.to_json().decode())
