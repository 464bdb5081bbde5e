"""From cells to the unit box: clipping, levels, and what makes a row absent."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpcate import Category, Number, Outcome, Schema, Treatment
from dpcate.encoding import (
    decode_covariates,
    encode_covariates,
    encode_outcome,
    encode_treatment,
    place_of,
    reference_points,
    value_at,
)

repeatable = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))

SCHEMA = Schema(
    covariates={"age": Number(20, 100), "sex": Category(["f", "m"])},
    treatment="treated",
    outcome=Outcome("y", -1, 3),
)
MISSING = [None, np.nan, np.inf, -np.inf, "", "  ", "twelve", "nan", "inf", pd.NA, pd.NaT, [1], {}, b"\xff"]


def cells(*values):
    return np.fromiter(values, dtype=object, count=len(values))


def encode(age, sex):
    return encode_covariates(SCHEMA, {"age": np.asarray(age), "sex": np.asarray(sex)})


def test_numbers_go_to_the_unit_interval_and_categories_to_indicators():
    x, present = encode([20.0, 60.0, 100.0], ["f", "m", "f"])
    assert x.tolist() == [[0, 1, 0], [0.5, 0, 1], [1, 1, 0]]
    assert present.all()


def test_values_outside_the_bounds_are_clipped():
    x, present = encode([-1e308, 19.9, 100.1, 1e308], ["f"] * 4)
    assert x[:, 0].tolist() == [0, 0, 1, 1]
    assert present.all()


def test_a_typical_value_lies_in_the_middle_of_its_scale():
    income = Number(0, 1000, typical=40)
    assert place_of(income, np.array([-5.0, 0.0, 40.0, 1000.0, 1e9])) == pytest.approx([0, 0, 0.5, 1, 1], abs=1e-12)
    schema = Schema(covariates={"income": income}, treatment="treated", outcome=SCHEMA.outcome)
    x, present = encode_covariates(schema, {"income": cells(40, "40", None, 2e3)})
    assert x[:, 0] == pytest.approx([0.5, 0.5, 0, 1])
    assert present.tolist() == [True, True, False, True]


def test_a_stretched_scale_is_a_logarithm():
    counts = np.arange(11.0)
    count = Number(0, 10, typical=np.sqrt(11) - 1)  # where log(1 + x) is half of log(11)
    assert place_of(count, counts) == pytest.approx(np.log(1 + counts) / np.log(11))
    assert place_of(Number(0, 10, typical=11 - np.sqrt(11)), counts[::-1]) == pytest.approx(1 - place_of(count, counts))
    assert np.array_equal(place_of(Number(0, 10, typical=5), counts), counts / 10)


@repeatable
@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    typical=st.floats(1e-5, 1 - 1e-5),
    places=st.lists(st.floats(0, 1), min_size=2, max_size=20),
)
def test_values_and_places_go_both_ways_in_order(low, width, typical, places):
    number = Number(low, low + width, typical=low + typical * width)
    places = np.sort(places)
    values = value_at(number, places)
    assert (np.diff(values) >= 0).all()
    assert ((values >= number.low - 1e-9 * abs(low)) & (values <= number.high + 1e-9 * (abs(low) + width))).all()
    steepest = np.exp(abs(number.bend)) * max(1, abs(low) / width)
    assert place_of(number, values) == pytest.approx(places, abs=1e-14 * steepest + 1e-9)


@pytest.mark.parametrize("place", [1e-6, 0.3, 0.5 - 1e-12, 0.5 + 1e-15, 1 - 1e-6])
def test_scales_are_sound_however_they_are_stretched(place):
    number = Number(-3, 5, typical=-3 + 8 * place)
    places = place_of(number, np.linspace(-3, 5, 1001))
    assert (places[0], places[-1]) == (0, 1)
    assert (np.diff(places) > 0).all()
    assert place_of(number, np.array([number.typical]))[0] == pytest.approx(0.5, abs=1e-6)


def test_outcome_is_clipped_to_its_range():
    outcome, known = encode_outcome(SCHEMA.outcome, cells(-5, "2.5", 1e9, None, "x"))
    assert outcome.tolist() == [-1, 2.5, 3, -1, -1]
    assert known.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("cell", MISSING, ids=repr)
def test_a_missing_number_makes_the_row_absent_and_zero(cell):
    x, present = encode(cells(60, cell, 60), ["f", "f", "m"])
    assert x.tolist() == [[0.5, 1, 0], [0, 0, 0], [0.5, 0, 1]]
    assert present.tolist() == [True, False, True]


@pytest.mark.parametrize("cell", [*MISSING, "F", "x", 0, True, np.zeros(2)], ids=repr)
def test_an_unknown_level_makes_the_row_absent_and_zero(cell):
    x, present = encode([60, 60, 60], cells("f", cell, "m"))
    assert x.tolist() == [[0.5, 1, 0], [0, 0, 0], [0.5, 0, 1]]
    assert present.tolist() == [True, False, True]


@pytest.mark.parametrize("column", [np.array([1.0, np.nan]), cells(1, np.nan), cells(1, pd.NA), cells("1", None)])
def test_a_missing_cell_is_not_a_level_named_nan(column):
    _, known = encode_treatment(Treatment("t", 1, "nan"), column)
    assert known.tolist() == [True, False]


def test_a_number_too_long_to_write_is_absent():
    _, known = encode_treatment(Treatment("t"), cells(10**5000, 1))
    assert known.tolist() == [False, True]


@pytest.mark.parametrize("levels", [(0, 1), ("0", "1"), (False, True), ("false", "true")], ids=str)
@pytest.mark.parametrize(
    "column",
    [
        np.array([0, 1]),
        np.array([0, 1], dtype=np.uint8),
        np.array([0.0, 1.0]),
        np.array([False, True]),
        np.array(["0", "1"]),
        np.array(["0.0", "1.0"]),
        cells(0, 1),
        cells(0.0, 1.0),
        cells(False, True),
        cells(np.bool_(False), np.float32(1)),
        cells(Decimal("0.00"), Decimal("1.00")),
        cells(" 0", "1 "),
        cells("False", "TRUE"),
        cells("false", True),
    ],
    ids=lambda column: f"{column.dtype}{column.tolist()}",
)
def test_every_spelling_of_zero_and_one(levels, column):
    treated, known = encode_treatment(Treatment("t", *levels), column)
    assert treated.tolist() == [0, 1]
    assert known.all()


def test_swapped_levels_swap_the_arms():
    treated, _ = encode_treatment(Treatment("t", 1, 0), cells(0, "1", False, True))
    assert treated.tolist() == [1, 0, 1, 0]


def test_other_numbers_are_no_treatment():
    treated, known = encode_treatment(Treatment("t"), np.array([2, -1, 0.5, np.nan, np.inf]))
    assert not known.any()
    assert not treated.any()


def test_numbers_may_be_text_decimals_or_truth_values():
    x, present = encode(cells("60", Decimal("60.0"), np.float32(60), " 6e1 ", True), ["f"] * 5)
    assert x[:, 0].tolist() == [0.5, 0.5, 0.5, 0.5, 0]
    assert present.all()


numbers = st.integers() | st.floats() | st.text() | st.booleans() | st.none()


@repeatable
@given(st.lists(st.tuples(numbers, numbers | st.sampled_from(["f", "m"])), min_size=1, max_size=5))
def test_any_cells_land_in_the_box_and_absent_rows_at_zero(rows):
    x, present = encode(cells(*[age for age, _ in rows]), cells(*[sex for _, sex in rows]))
    assert ((x >= 0) & (x <= 1)).all()
    assert (x[present][:, 1:].sum(axis=1) == 1).all()
    assert not x[~present].any()


@repeatable
@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=5), st.tuples(numbers, numbers))
def test_a_row_is_encoded_by_its_own_cells_alone(rows, other):
    before, _ = encode(cells(*[a for a, _ in rows]), cells(*[b for _, b in rows]))
    rows[0] = other
    after, _ = encode(cells(*[a for a, _ in rows]), cells(*[b for _, b in rows]))
    assert np.array_equal(before[1:], after[1:])


@repeatable
@given(st.lists(st.tuples(st.floats(20, 100), st.sampled_from(["f", "m"])), min_size=1, max_size=5))
def test_decoding_inverts_encoding(rows):
    ages, sexes = zip(*rows, strict=True)
    decoded = decode_covariates(SCHEMA, encode(ages, sexes)[0])
    assert np.allclose(decoded["age"], ages, rtol=1e-14)
    assert decoded["sex"].tolist() == list(sexes)


def test_decoding_gives_levels_in_their_own_type():
    schema = Schema(covariates={"ward": Category([1, "b", True])}, treatment="t", outcome=Outcome("y", 0, 1))
    decoded = decode_covariates(schema, np.eye(3))["ward"].tolist()
    assert decoded == [1, "b", True]
    assert [type(level) for level in decoded] == [int, str, bool]


def test_reference_points_fill_the_box():
    points = reference_points(SCHEMA, 256)
    assert points.shape == (256, SCHEMA.width)
    assert ((points >= 0) & (points <= 1)).all()
    assert points[:, 1:].sum(axis=0).tolist() == [128, 128]
    assert np.histogram(points[:, 0], bins=8, range=(0, 1))[0].tolist() == [32] * 8


def test_reference_points_are_public_and_always_the_same():
    assert np.array_equal(reference_points(SCHEMA), reference_points(SCHEMA))
    assert len(reference_points(SCHEMA)) == 1024
