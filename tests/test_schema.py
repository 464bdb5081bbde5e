"""Public facts: what a schema accepts, what it refuses, and that TOML keeps it whole."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dpcate
from dpcate import Category, Number, Outcome, Schema, Treatment
from dpcate.errors import DataError, SchemaError

repeatable = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))

DESIGN_TOML = """\
treatment = "ventilated"

[covariates.age]
kind = "number"
low = 18.0
high = 100.0
unit = "years"            # optional, for people

[covariates.sex]
kind = "category"
levels = ["f", "m"]

[outcome]
name = "rbc"
low = 2.0
high = 7.0

[person]                  # optional
column = "subject_id"
max_rows = 1
"""


def schema(**changes):
    facts = {
        "covariates": {"age": Number(18, 100), "sex": Category(["f", "m"])},
        "treatment": "ventilated",
        "outcome": Outcome("rbc", low=2.0, high=7.0),
    }
    return Schema(**{**facts, **changes})


def refusal(make, kind=SchemaError):
    """The text of the refusal: one line, and no other error behind it that could say more."""
    with pytest.raises(kind) as caught:
        make()
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return text


def test_example_of_the_design():
    example = dpcate.Schema(
        covariates={"age": dpcate.Number(18, 100), "sex": dpcate.Category(["f", "m"])},
        treatment="ventilated",
        outcome=dpcate.Outcome("rbc", low=2.0, high=7.0),
        person=None,
        max_rows_per_person=1,
    )
    assert example.columns == ["age", "sex", "ventilated", "rbc"]
    assert example.width == 3
    assert example.outcome.range == 5.0


def test_arguments_by_position():
    assert Number(18, 100) == Number(low=18.0, high=100.0)
    assert Category(["f", "m"]) == Category(levels=["f", "m"])
    assert Outcome("rbc", 2, 7) == Outcome("rbc", low=2.0, high=7.0)


def test_treatment_by_name_or_with_levels():
    assert schema().treatment == Treatment("ventilated", 0, 1)
    assert schema(treatment=Treatment("arm", "placebo", "drug")).treatment.treated == "drug"


def test_a_schema_cannot_be_changed():
    with pytest.raises(AttributeError):
        schema().outcome.low = 0.0


def test_numpy_bounds_and_tuples_become_plain():
    assert Number(np.int64(0), np.float64(1)) == Number(0, 1)
    assert Category(("f", "m")) == Category(["f", "m"])


SCHEMAS = {
    "plain": schema(),
    "unit": schema(covariates={"age": Number(18, 100, unit="years")}, outcome=Outcome("rbc", 2, 7, "10¹²/L")),
    "person": schema(person="subject_id", max_rows_per_person=3),
    "person, one row": schema(person="subject_id"),
    "treatment levels": schema(treatment=Treatment("arm", "placebo", "drug")),
    "treatment true": schema(treatment=Treatment("arm", False, True)),
    "binary": schema(outcome=Outcome("died", 0, 1, binary=True)),
    "level types": schema(covariates={"ward": Category([1, "2b", True])}),
    "odd names": schema(covariates={'a "b", [c]\t.é': Number(-1e-9, 1e300)}),
    "numpy bounds": schema(covariates={"age": Number(np.float64(18), np.int64(100))}),
}


@pytest.mark.parametrize("original", SCHEMAS.values(), ids=SCHEMAS)
def test_toml_round_trip(original, tmp_path):
    assert Schema.from_toml(original.to_toml()) == original
    original.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == original
    assert Schema.from_document(original.to_document()) == original


def test_toml_of_the_design_loads():
    assert Schema.from_toml(DESIGN_TOML) == schema(
        covariates={"age": Number(18, 100, unit="years"), "sex": Category(["f", "m"])}, person="subject_id"
    )


def test_a_byte_order_mark_is_no_obstacle(tmp_path):
    (tmp_path / "schema.toml").write_bytes(b"\xef\xbb\xbf" + DESIGN_TOML.encode())
    assert Schema.load(tmp_path / "schema.toml") == Schema.from_toml(DESIGN_TOML)


names = st.text(min_size=1).filter(lambda text: text.strip() and len(text.splitlines()) == 1)
bounds = st.tuples(*[st.floats(-1e300, 1e300)] * 2).map(sorted).filter(lambda pair: pair[0] < pair[1])
units = st.none() | st.text()
numbers = st.builds(lambda pair, unit: Number(*pair, unit), bounds, units)
levels = st.text(min_size=1).filter(lambda text: text.strip()) | st.integers() | st.booleans()
distinct_levels = st.lists(levels, min_size=2, max_size=4, unique_by=lambda level: str(level).strip().lower())


@repeatable
@given(
    columns=st.lists(names, min_size=4, max_size=6, unique=True),
    covariates=st.lists(numbers | distinct_levels.map(Category), min_size=3, max_size=3),
    arms=distinct_levels,
    pair=bounds | st.tuples(st.floats(-1e30, 0), st.floats(1e-30, 1e30)),
    binary=st.booleans(),
    unit=units,
    rows=st.integers(1, 2**63 - 1),
)
def test_toml_round_trip_of_any_schema(columns, covariates, arms, pair, binary, unit, rows):
    treatment, outcome, person, *rest = columns
    assume(1e-60 <= pair[1] - pair[0] <= 1e60)
    original = Schema(
        covariates=dict(zip(rest, covariates, strict=False)),
        treatment=Treatment(treatment, arms[0], arms[1]),
        outcome=Outcome(outcome, *pair, unit=unit, binary=binary),
        person=person,
        max_rows_per_person=rows,
    )
    assert Schema.from_toml(original.to_toml()) == original


@pytest.mark.parametrize("bound", [math.inf, math.nan, None, "100", True, 10**400, np.inf])
@pytest.mark.parametrize("make", [lambda b: Number(18, b), lambda b: Number(b, 100), lambda b: Outcome("y", 0, b)])
def test_unbounded_is_refused(make, bound):
    assert "codebook" in refusal(lambda: make(bound))


@pytest.mark.parametrize(("low", "high"), [(100, 18), (1, 1), (-1.7e308, 1.7e308)])
def test_reversed_or_infinitely_wide_is_refused(low, high):
    assert "swap or correct" in refusal(lambda: Number(low, high))
    assert "swap or correct" in refusal(lambda: Outcome("y", low, high))


@pytest.mark.parametrize("high", [1e300, 1e61, 1e-61])
def test_outcomes_whose_powers_no_number_holds_are_refused(high):
    assert "change its unit" in refusal(lambda: Outcome("y", 0, high))


@pytest.mark.parametrize("levels", [[], None, "fm", {"f"}])
def test_category_without_levels_is_refused(levels):
    assert "list every value" in refusal(lambda: Category(levels))


@pytest.mark.parametrize("levels", [["f", "f"], [1, "1"], ["f", " f "], [True, "TRUE"], ["f", ""], ["f", " "]])
def test_levels_that_compare_equal_are_refused(levels):
    assert "distinct" in refusal(lambda: Category(levels))


@pytest.mark.parametrize("levels", [[1.5], [None, "f"], [["f"]]])
def test_levels_of_other_types_are_refused(levels):
    assert "text, whole numbers or true/false" in refusal(lambda: Category(levels))


def test_treatment_with_one_level_is_refused():
    assert "distinct" in refusal(lambda: Treatment("arm", "drug", "drug"))


@pytest.mark.parametrize(
    "changes",
    [
        {"treatment": "age"},
        {"treatment": "rbc"},
        {"person": "age"},
        {"person": "ventilated"},
        {"outcome": Outcome("sex", 0, 1)},
    ],
    ids=str,
)
def test_a_column_with_two_roles_is_refused(changes):
    assert "one role only" in refusal(lambda: schema(**changes))


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", 3])
def test_a_column_without_a_proper_name_is_refused(name):
    for make in (
        lambda: schema(covariates={name: Number(0, 1)}),
        lambda: schema(person=name),
        lambda: Treatment(name),
        lambda: Outcome(name, 0, 1),
    ):
        assert "column name, on one line" in refusal(make)


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"covariates": {}}, "at least one covariate"),
        ({"covariates": ["age"]}, "dpcate.Number(low, high)"),
        ({"covariates": {"age": (18, 100)}}, "dpcate.Number(low, high)"),
        ({"treatment": 1}, "column name"),
        ({"outcome": "rbc"}, "dpcate.Outcome(name, low, high)"),
        ({"max_rows_per_person": 2}, "needs the person column"),
        ({"person": "id", "max_rows_per_person": 0}, "at least 1"),
        ({"person": "id", "max_rows_per_person": 1.5}, "whole number"),
        ({"person": "id", "max_rows_per_person": True}, "whole number"),
    ],
)
def test_wrong_schema_is_refused(changes, remedy):
    assert remedy in refusal(lambda: schema(**changes))


def test_what_a_file_could_not_hold_is_refused():
    assert "must be text" in refusal(lambda: Number(0, 1, unit=5))
    assert "must be text" in refusal(lambda: Outcome("y", 0, 1, unit=5))
    assert "true or false" in refusal(lambda: Outcome("y", 0, 1, binary="yes"))


@pytest.mark.parametrize(
    ("old", "new", "remedy"),
    [
        ("low = 18.0", "low = nan", "codebook"),
        ("high = 100.0", "high = inf", "codebook"),
        ("high = 100.0", "high = 1.0", "swap or correct"),
        ("high = 100.0", "", "missing required field `high`"),
        ("high = 100.0", f"high = 1{'0' * 400}", "out of range"),
        ("high = 100.0", 'high = "100"', "Expected `float`, got `str`"),
        ("high = 100.0", "high = 100.0\nhihg = 1", "unknown field `hihg`"),
        ('kind = "number"', "", "missing required field `kind`"),
        ('kind = "number"', 'kind = "numeric"', "Invalid value"),
        ('["f", "m"]', "[]", "list every value"),
        ('["f", "m"]', '["f", "f"]', "distinct"),
        ('["f", "m"]', "[1.5]", "got `float`"),
        ('["f", "m"]', '"fm"', "Expected `array`"),
        ('treatment = "ventilated"', "treatment = 1", "Expected `str | object`"),
        ('treatment = "ventilated"', "treatment = 1979-05-27", "Expected `str | object`"),
        ('treatment = "ventilated"', 'treatment = "age"', "one role only"),
        ('treatment = "ventilated"', "", "missing required field `treatment`"),
        ('treatment = "ventilated"', 'treatment = "t"\n"two\\nlines" = 1', "unknown field"),
        ('treatment = "ventilated"', 'treatment = "t"\nmax_rows_per_person = 2', "inside the [person] table"),
        ("max_rows = 1", "max_rows = 0", "at least 1"),
        ("max_rows = 1", "max_rows = true", "Expected `int`"),
        ("max_rows = 1", "max_row = 1", "unknown field `max_row`"),
        ("low = 2.0", "low = 2.0\nbinary = 1", "Expected `bool`"),
    ],
)
def test_wrong_toml_is_refused(old, new, remedy):
    assert DESIGN_TOML.count(old) == 1
    assert remedy in refusal(lambda: Schema.from_toml(DESIGN_TOML.replace(old, new)))


def test_max_rows_without_a_person_is_refused_in_toml():
    document = "max_rows_per_person = 2\n" + schema().to_toml()
    assert "needs the person column" in refusal(lambda: Schema.from_toml(document))


def test_person_as_plain_text_is_refused_in_toml():
    assert "Expected `object`" in refusal(lambda: Schema.from_toml('person = "id"\n' + schema().to_toml()))


@pytest.mark.parametrize("text", ["treatment =", "[covariates", "a = 1\na = 2", "=", "\0", "a = 1" + "0" * 5000])
def test_corrupt_toml_is_refused(text):
    assert "not valid TOML" in refusal(lambda: Schema.from_toml(text))


def test_empty_toml_is_refused():
    assert "missing required field" in refusal(lambda: Schema.from_toml(""))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "schema.toml").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in refusal(lambda: Schema.load(tmp_path / "schema.toml"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert "'schema.toml' cannot be read" in refusal(lambda: Schema.load(tmp_path / "schema.toml"), DataError)
    assert "cannot be read" in refusal(lambda: Schema.load(tmp_path), DataError)
