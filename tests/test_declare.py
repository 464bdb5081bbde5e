"""`schema init` and `schema check`: names and declared types of columns, and nothing of what the rows hold."""

import subprocess
import sys
import tomllib

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcate
from dpcate.declare import mismatches, schema_template
from dpcate.errors import DataError, SchemaError

SECRET = "SENTINEL"
FRAME = pd.DataFrame(
    {"age": [41.5, 98.25], "sex": [SECRET, "m"], "smoker": [True, False], "t": [0, 1], "y": [0.5, 9.75]}
)
FILLED = """
treatment = "t"
[outcome]
name = "y"
low = 0
high = 10
[covariates.age]
kind = "number"
low = 18
high = 100
[covariates.sex]
kind = "category"
levels = ["f", "m"]
"""


@pytest.fixture
def folder(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    FRAME.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "filled.toml").write_text(FILLED)
    return tmp_path


def run(*arguments, folder):
    command = [sys.executable, "-m", "dpcate", "schema", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_template_names_every_column_and_holds_no_value(folder, name):
    template = schema_template(folder / name)
    assert list(tomllib.loads(template)["covariates"]) == list(FRAME.columns)
    for value in (SECRET, "41.5", "98.25", "9.75"):
        assert value not in template


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_template_depends_on_the_header_alone(folder, name):
    """Guarantee: other rows under the same columns give the same template, byte for byte."""
    before = schema_template(folder / name)
    other = FRAME.assign(age=[0.0, 1e9], sex=["q", "r"], y=[-5.0, 5.0])
    other.to_csv(folder / "rows.csv", index=False)
    other.to_parquet(folder / "rows.parquet")
    assert schema_template(folder / name) == before


def test_types_are_those_that_the_file_declares(folder):
    kinds = {
        name: table["kind"]
        for name, table in tomllib.loads(schema_template(folder / "rows.parquet"))["covariates"].items()
    }
    assert kinds == {"age": "number", "sex": "category", "smoker": "category", "t": "number", "y": "number"}
    kinds = {table["kind"] for table in tomllib.loads(schema_template(folder / "rows.csv"))["covariates"].values()}
    assert kinds == {"FILL IN"}


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_template_is_refused_until_it_is_filled_in(folder, name):
    template = schema_template(folder / name)
    with pytest.raises(SchemaError, match=r"still has to be filled in: treatment, outcome\.name.* and \d+ more"):
        dpcate.Schema.from_toml(template)
    almost = FILLED.replace("high = 100", 'high = "FILL IN"')
    with pytest.raises(SchemaError, match=r"filled in: covariates\.age\.high; take the facts from the codebook"):
        dpcate.Schema.from_toml(almost)
    with pytest.raises(SchemaError, match=r"filled in: covariates\.sex\.levels"):
        dpcate.Schema.from_toml(FILLED.replace('"f", "m"', '"FILL IN"'))


def test_strange_names_survive(tmp_path):
    names = ["a b", 'quo"te', "dot.ted", "größe", "tab\there", "[x]", "# no comment", "\x7f"]
    pq.write_table(pa.table({name: [1.0] for name in names}), tmp_path / "rows.parquet")
    assert list(tomllib.loads(schema_template(tmp_path / "rows.parquet"))["covariates"]) == names


def test_dates_and_nested_columns_are_left_out_with_a_reason(tmp_path):
    pq.write_table(pa.table({"x": [1.0], "when": pa.array([0], pa.timestamp("s"))}), tmp_path / "rows.parquet")
    template = schema_template(tmp_path / "rows.parquet")
    assert list(tomllib.loads(template)["covariates"]) == ["x"]
    assert "# when: dates or nested values, which cannot be used" in template


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"41.5,f,1,0.5\n98,m,0,1\n", "holds numbers where column names"),
        (b"a,a,b\n1,2,3\n", "more than one column named a"),
        (b"a,,b\n1,2,3\n", "needs a name"),
    ],
)
def test_headers_that_are_no_headers_are_refused_without_showing_them(tmp_path, content, message):
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises((DataError, SchemaError), match=message) as refusal:
        schema_template(tmp_path / "rows.csv")
    assert "41.5" not in str(refusal.value)


def test_check_knows_names_and_types(folder):
    schema = dpcate.Schema.load(folder / "filled.toml")
    assert mismatches(schema, folder / "rows.csv") == mismatches(schema, folder / "rows.parquet") == []
    FRAME.drop(columns="age").to_csv(folder / "lacking.csv", index=False)
    with pytest.raises(DataError, match="lacks the columns age"):
        mismatches(schema, folder / "lacking.csv")
    FRAME.assign(age=pd.to_datetime("2020-01-01")).to_parquet(folder / "dates.parquet")
    with pytest.raises(DataError, match="dates or nested values; give numbers or text: age"):
        mismatches(schema, folder / "dates.parquet")
    FRAME.assign(age=SECRET, sex=True).to_parquet(folder / "odd.parquet")
    notes = mismatches(schema, folder / "odd.parquet")
    assert [note.split(" is declared")[0] for note in notes] == ["age", "sex"]
    assert SECRET not in "".join(notes)


def test_the_commands(folder):
    done = run("init", "rows.csv", "--out", "schema.toml", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run("init", "rows.csv", folder=folder).stdout == (folder / "schema.toml").read_text()
    again = run("init", "rows.csv", "--out", "schema.toml", folder=folder)
    assert again.returncode == 2
    assert "is not overwritten" in again.stderr
    unfilled = run("check", "schema.toml", "--data", "rows.csv", folder=folder)
    assert unfilled.returncode == 2
    assert unfilled.stderr.startswith("error: the schema still has to be filled in")
    assert unfilled.stderr.count("\n") == 1
    done = run("check", "filled.toml", "--data", "rows.csv", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "usable: effect of t on y, 2 covariates, all 4 columns found\n"


def test_reference_values_are_declared_facts():
    covariates = {"age": dpcate.Number(18, 100, reference=70), "sex": dpcate.Category(["f", "m"], reference="m")}
    schema = dpcate.Schema(covariates=covariates, treatment="t", outcome=dpcate.Outcome("y", low=0, high=1))
    assert dpcate.Schema.from_toml(schema.to_toml()) == schema
    assert [covariate.resting for covariate in schema.covariates.values()] == [70.0, "m"]
    assert (dpcate.Number(18, 100).resting, dpcate.Category(["f", "m"]).resting) == (59.0, "f")
    for wrong in (101, float("nan"), True):
        with pytest.raises(SchemaError, match="reference value"):
            dpcate.Number(18, 100, reference=wrong)
    with pytest.raises(SchemaError, match="reference value"):
        dpcate.Category(["f", "m"], reference="x")


def test_typical_values_are_declared_facts():
    income = dpcate.Number(0, 1000, unit="$1,000", typical=40)
    schema = dpcate.Schema(covariates={"income": income}, treatment="t", outcome=dpcate.Outcome("y", low=0, high=1))
    assert "typical = 40.0" in schema.to_toml()
    assert dpcate.Schema.from_toml(schema.to_toml()) == schema
    assert "typical" not in schema.to_toml().replace("typical = 40.0", "")
    assert (income.resting, dpcate.Number(0, 1000, typical=40, reference=60).resting) == (40.0, 60.0)


@pytest.mark.parametrize("wrong", [0, 1000, -1, 1001, 1e-9, float("nan"), float("inf"), True, "40"])
def test_a_typical_value_off_the_scale_is_refused(wrong):
    with pytest.raises(SchemaError, match="a typical value must lie between the bounds"):
        dpcate.Number(0, 1000, typical=wrong)
