"""The division into parts, against the two meanings of a neighbour (proofs/splitting.md)."""

import numpy as np
import pytest

from dpcate import Number, Outcome, Schema
from dpcate.data import Split, read_rows, split_rows

FACTS = {"covariates": {"age": Number(0, 100)}, "treatment": "treated", "outcome": Outcome("y", 0, 1000)}
ROW_IS_PERSON = Schema(**FACTS)
MANY_ROWS = Schema(**FACTS, person="id", max_rows_per_person=50)
SCHEMAS = pytest.mark.parametrize("schema", [ROW_IS_PERSON, MANY_ROWS], ids=["row", "person"])
KINDS = pytest.mark.parametrize("kind", ["crossfit", "disjoint"])

N = 40
OWNERS = [place * 7 % 16 for place in range(N)]  # sixteen persons, two or three rows each, interleaved


def table(places=range(N)):
    """Rows that can be told apart by their outcome."""
    places = list(places)
    return {
        "id": [f"person {OWNERS[place]}" for place in places],
        "age": [place * 13 % 100 for place in places],
        "treated": [place % 2 for place in places],
        "y": places,
    }


def parts_of(schema, cells, neighbours, kind="crossfit"):
    return split_rows(read_rows(schema, table=cells), Split(kind), neighbours)


def changed(cells, place, **row):
    return {name: [*column[:place], row[name], *column[place + 1 :]] for name, column in cells.items()}


@KINDS
@pytest.mark.parametrize("row", [(99, 1, 999), (None, "neither", None), (0, 0, 0)], ids=str)
def test_replace_one_row_moves_no_row(kind, row):
    before = parts_of(ROW_IS_PERSON, table(), "replace-one", kind)
    for place in range(N):
        cells = changed(table(), place, id="x", age=row[0], treated=row[1], y=row[2])
        assert np.array_equal(parts_of(ROW_IS_PERSON, cells, "replace-one", kind), before)


@KINDS
def test_replace_one_person_moves_no_row(kind):
    before = parts_of(MANY_ROWS, table(), "replace-one", kind)
    for person in set(OWNERS):
        cells = table()
        for place in np.flatnonzero(np.array(OWNERS) == person):
            cells = changed(cells, place, id="somebody else", age=None, treated=1, y=999)
        assert np.array_equal(parts_of(MANY_ROWS, cells, "replace-one", kind), before)


@pytest.mark.parametrize("count", range(9))
def test_replace_one_parts_are_of_equal_size(count):
    sizes = np.bincount(parts_of(ROW_IS_PERSON, table(range(count)), "replace-one"), minlength=2)
    assert sizes.sum() == count
    assert abs(sizes[0] - sizes[1]) <= 1


@pytest.mark.parametrize("count", range(1, 17))
def test_replace_one_parts_hold_equally_many_persons(count):
    rows = read_rows(MANY_ROWS, table=table(place for place in range(N) if OWNERS[place] < count))
    parts = split_rows(rows, Split("crossfit"), "replace-one")
    sizes = [len(set(rows.person[parts == part])) for part in (0, 1)]
    assert sum(sizes) == rows.persons == count
    assert abs(sizes[0] - sizes[1]) <= 1


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_all_rows_of_a_person_are_in_one_part(neighbours):
    rows = read_rows(MANY_ROWS, table=table())
    parts = split_rows(rows, Split("crossfit"), neighbours)
    assert set(parts.tolist()) == {0, 1}
    assert all(len(set(parts[rows.person == person])) == 1 for person in range(rows.persons))


@SCHEMAS
@KINDS
def test_remove_one_row_moves_no_other_row(schema, kind):
    before = parts_of(schema, table(), "add-or-remove-one", kind)
    assert set(before.tolist()) == {0, 1}
    for gone in range(N):
        after = parts_of(schema, table(place for place in range(N) if place != gone), "add-or-remove-one", kind)
        assert np.array_equal(after, np.delete(before, gone))


def test_remove_one_person_moves_no_other_row():
    before = parts_of(MANY_ROWS, table(), "add-or-remove-one")
    for person in set(OWNERS):
        rest = [place for place in range(N) if OWNERS[place] != person]
        assert np.array_equal(parts_of(MANY_ROWS, table(rest), "add-or-remove-one"), before[rest])


@SCHEMAS
def test_remove_one_absent_row_moves_no_other_row(schema):
    cells = changed(table(), 3, id=None, age=None, treated=None, y=None)
    rest = {name: np.delete(np.array(column, dtype=object), 3) for name, column in cells.items()}
    before = parts_of(schema, cells, "add-or-remove-one")
    assert np.array_equal(parts_of(schema, rest, "add-or-remove-one"), np.delete(before, 3))


@SCHEMAS
def test_order_of_rows_moves_no_row_under_add_or_remove_one(schema):
    before = parts_of(schema, table(), "add-or-remove-one")
    assert np.array_equal(parts_of(schema, table(reversed(range(N))), "add-or-remove-one"), before[::-1])


@SCHEMAS
def test_division_by_row_index_would_move_many_rows_when_one_is_removed(schema):
    """Why add-or-remove-one has its own rule: without the first person, others change number and part."""
    rest = [place for place in range(N) if OWNERS[place] != OWNERS[0]]
    before = parts_of(schema, table(), "replace-one")[rest]
    after = parts_of(schema, table(rest), "replace-one")
    assert np.count_nonzero(after != before) > N // 5


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_without_a_split_all_rows_are_one_part(neighbours):
    assert not parts_of(ROW_IS_PERSON, table(), neighbours, "none").any()
    assert Split("none").parts == 1


def test_no_rows_have_no_parts():
    for neighbours in ("replace-one", "add-or-remove-one"):
        assert parts_of(ROW_IS_PERSON, table([]), neighbours).tolist() == []


def test_disjoint_stages_never_meet_a_row_twice_so_each_may_spend_all():
    split = Split("disjoint")
    ((trained_on, applied_to),) = split.pairs
    assert trained_on != applied_to == split.second_stage_part
    assert split.parts == 2
    assert not split.stages_share_budget


def test_crossfit_nuisances_meet_only_rows_they_were_not_trained_on():
    split = Split("crossfit")
    assert sorted(applied_to for _, applied_to in split.pairs) == [0, 1]
    assert all(trained_on == 1 - applied_to for trained_on, applied_to in split.pairs)
    assert split.second_stage_part is None
    assert split.stages_share_budget


def test_no_split_uses_all_rows_throughout():
    split = Split("none")
    assert split.pairs == [(None, None)]
    assert split.second_stage_part is None
    assert split.stages_share_budget


HELD_OUT = [Split(kind, held_out=True) for kind in ("none", "crossfit", "disjoint")]


@pytest.mark.parametrize("split", HELD_OUT, ids=lambda split: split.kind)
def test_one_person_in_five_is_held_out_of_both_stages(split):
    last = split.held_out_part
    assert split.parts == last + 1 == (2 if split.kind == "none" else 3)
    assert split.share(last) == 0.2
    used = [*(part for pair in split.pairs for part in pair), split.second_stage_part]
    for part in used:
        assert part is not None
        assert last not in (part if isinstance(part, tuple) else (part,))
    assert split.share(split.second_stage_part) == (0.4 if split.kind == "disjoint" else 0.8)


@pytest.mark.parametrize("split", HELD_OUT, ids=lambda split: split.kind)
@pytest.mark.parametrize("count", range(1, 41))
def test_no_part_holds_more_persons_than_its_declared_number_rounded_up(split, count):
    """Which the proof of the exact kernel leans on."""
    parts = split_rows(read_rows(ROW_IS_PERSON, table=table(range(count))), split, "replace-one")
    whole = split.second_stage_part
    for part in {*range(split.parts), whole}:
        persons = np.isin(parts, part).sum()
        assert persons <= np.ceil(count * split.share(part) - 1e-9)


@SCHEMAS
@pytest.mark.parametrize("split", HELD_OUT, ids=lambda split: split.kind)
def test_whoever_joins_or_leaves_moves_nobody_into_or_out_of_the_held_out(schema, split):
    rows = read_rows(schema, table=table())
    parts = split_rows(rows, split, "add-or-remove-one")
    before = dict(zip(rows.outcome, parts, strict=True))
    for left in set(OWNERS):
        fewer = read_rows(schema, table=table(place for place in range(N) if OWNERS[place] != left))
        after = dict(zip(fewer.outcome, split_rows(fewer, split, "add-or-remove-one"), strict=True))
        assert all(before[outcome] == part for outcome, part in after.items())
