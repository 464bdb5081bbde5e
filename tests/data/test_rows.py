"""The sealed container, how many rows a person may bring, and keys made from own data alone."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from dpcate import Category, Number, Outcome, Schema
from dpcate.data import Rows, read_rows
from dpcate.errors import DataError

FACTS = {
    "covariates": {"age": Number(0, 100), "sex": Category(["f", "m"])},
    "treatment": "treated",
    "outcome": Outcome("y", 0, 10),
}
ROW_IS_PERSON = Schema(**FACTS)
UP_TO_TWO = Schema(**FACTS, person="id", max_rows_per_person=2)

TABLE = {
    "id": ["a", "b", "a", None, "a", "c", "b", " ", "c"],
    "age": [11, 22, 33, 44, 55, 66, 77, 88, 99],
    "sex": ["f", "m", "f", "m", "f", "m", "f", "m", "f"],
    "treated": [0, 1, 0, 1, 0, 1, 0, 1, 0],
    "y": [1, 2, 3, 4, 5, 6, 7, 8, 9],
}


def rows_at(places, table=TABLE):
    return {name: [column[place] for place in places] for name, column in table.items()}


def keys_by_age(rows):
    """The key of each row's owner, by age: in this table an age is a row's fingerprint."""
    return dict(zip(rows.x[:, 0].tolist(), rows.person_key[rows.person].tolist(), strict=True))


def test_repr_shows_nothing():
    rows = read_rows(ROW_IS_PERSON, table=TABLE)
    assert repr(rows) == str(rows) == f"{rows}" == "<Rows: sealed>"
    assert repr([rows]) == "[<Rows: sealed>]"
    assert not hasattr(rows, "__dict__")


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy, lambda rows: rows.__reduce_ex__(4)])
def test_rows_are_not_copied_or_written(leak):
    with pytest.raises(TypeError, match="sealed"):
        leak(read_rows(ROW_IS_PERSON, table=TABLE))


def test_without_a_person_column_every_row_is_a_person():
    rows = read_rows(ROW_IS_PERSON, table=TABLE)
    assert rows.persons == 9
    assert rows.person.tolist() == list(range(9))
    assert rows.outcome.tolist() == TABLE["y"]


@pytest.mark.parametrize(("most", "kept"), [(1, [1, 2, 4, 6, 8]), (2, [1, 2, 3, 4, 6, 7, 8, 9]), (3, [*range(1, 10)])])
def test_the_first_rows_of_each_person_are_kept(most, kept):
    rows = read_rows(Schema(**FACTS, person="id", max_rows_per_person=most), table=TABLE)
    assert rows.outcome.tolist() == kept
    assert np.bincount(rows.person).max() <= most
    assert all(len(column) == len(kept) for column in (rows.x, rows.treated, rows.present, rows.person))


def test_persons_are_numbered_by_first_appearance():
    rows = read_rows(UP_TO_TWO, table=TABLE)
    assert rows.person.tolist() == [0, 1, 0, 2, 3, 1, 4, 3]
    assert rows.persons == len(rows.person_key) == 5


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, "", "  ", np.zeros(2)], ids=repr)
def test_a_row_without_a_person_is_absent(missing):
    table = {**rows_at([0, 1, 2]), "id": pd.Series(["a", missing, "a"], dtype=object)}
    rows = read_rows(UP_TO_TWO, table=table)
    assert rows.present.tolist() == [True, False, True]
    assert rows.person.tolist() == [0, 1, 0]


@pytest.mark.parametrize("ids", [[7, 8, 7], [7.0, 8.0, 7.0], ["7", "8 ", " 7"], pd.array([7, 8, 7], dtype="Int64")])
def test_a_name_is_the_same_in_every_type(ids):
    rows = read_rows(UP_TO_TWO, table={**rows_at([0, 1, 2]), "id": ids})
    expected = read_rows(UP_TO_TWO, table={**rows_at([0, 1, 2]), "id": ["7", "8", "7"]})
    assert rows.person.tolist() == [0, 1, 0]
    assert rows.person_key.tolist() == expected.person_key.tolist()


def test_a_missing_name_does_not_merge_long_ones():
    ids = pd.array([2**60, 2**60 + 1, None], dtype="Int64")
    rows = read_rows(UP_TO_TWO, table=pd.DataFrame({**rows_at([0, 1, 2]), "id": ids}))
    assert rows.person.tolist() == [0, 1, 2]


@pytest.mark.parametrize("schema", [ROW_IS_PERSON, Schema(**FACTS, person="id", max_rows_per_person=9)])
def test_removing_rows_leaves_all_other_keys(schema):
    whole = keys_by_age(read_rows(schema, table=TABLE))
    assert len(set(whole.values())) >= 4
    for gone in range(9):
        rest = keys_by_age(read_rows(schema, table=rows_at([place for place in range(9) if place != gone])))
        assert rest.items() <= whole.items()
        assert len(rest) == 8


@pytest.mark.parametrize("schema", [ROW_IS_PERSON, Schema(**FACTS, person="id", max_rows_per_person=9)])
def test_changing_a_row_leaves_all_other_keys(schema):
    whole = keys_by_age(read_rows(schema, table=TABLE))
    for changed in range(9):
        table = {name: list(column) for name, column in TABLE.items()}
        for name, cell in {"id": "new", "age": 1, "sex": "unknown", "treated": 7, "y": None}.items():
            table[name][changed] = cell
        after = keys_by_age(read_rows(schema, table=table))
        after.pop(0.0)
        assert after.items() <= whole.items()
        assert len(after) == 8


def test_order_does_not_matter_to_keys():
    schema = Schema(**FACTS, person="id", max_rows_per_person=9)
    backwards = rows_at(range(8, -1, -1))
    assert keys_by_age(read_rows(schema, table=backwards)) == keys_by_age(read_rows(schema, table=TABLE))


def test_equal_rows_have_equal_keys_and_different_rows_do_not():
    keys = read_rows(ROW_IS_PERSON, table=rows_at([0, 1, 0])).person_key
    assert keys[0] == keys[2] != keys[1]


def test_zero_has_one_key_whatever_its_sign():
    table = {**rows_at([0, 0]), "y": [0.0, -0.0]}
    keys = read_rows(ROW_IS_PERSON, table=table).person_key
    assert keys[0] == keys[1]


def test_absent_rows_stay_as_rows():
    table = {**rows_at([0, 1, 2]), "sex": ["f", "unknown", "m"]}
    rows = read_rows(ROW_IS_PERSON, table=table)
    assert isinstance(rows, Rows)
    assert rows.present.tolist() == [True, False, True]
    assert rows.x[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({}, "give either"),
        ({"table": TABLE, "Y": [1]}, "give either"),
        ({"Y": [1], "T": [1]}, "all needed"),
        ({"Y": [1, 2], "T": [1], "X": [[1, "f"]]}, "same number of rows"),
    ],
    ids=["nothing", "both", "no X", "lengths"],
)
def test_wrong_calls_are_refused(arguments, remedy):
    with pytest.raises(DataError, match=remedy):
        read_rows(ROW_IS_PERSON, **arguments)


def test_a_person_column_needs_a_table():
    with pytest.raises(DataError, match="table="):
        read_rows(UP_TO_TWO, Y=[1], T=[1], X=[[1, "f"]])
