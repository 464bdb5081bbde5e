"""Brute force over neighbouring tables, through the whole fit.

A first fit records every statistic that reaches the mechanisms and every number that leaves them. A second fit
on a neighbouring table is fed the same released numbers, so each statistic is computed with the same public
parameters: the two may differ by at most the declared sensitivity, and in one part of the rows only.
"""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcate.pipeline
from dpcate import Category, KnownPropensity, Number, Outcome, PrivateCATE, Schema
from dpcate.diagnostics import NAMES

BASE = 14
SCHEMA = Schema(
    covariates={"age": Number(18, 100), "sex": Category(["f", "m"])},
    treatment="treated",
    outcome=Outcome("y", low=-2.0, high=5.0),
)
BY_PERSON = Schema(
    covariates=SCHEMA.covariates,
    treatment="treated",
    outcome=SCHEMA.outcome,
    person="id",
    max_rows_per_person=2,
)

ages = st.one_of(st.sampled_from([18.0, 100.0, -1e12, 1e12, np.nan, np.inf]), st.floats(18, 100))
outcomes = st.one_of(st.sampled_from([-2.0, 5.0, -1e300, 1e300, np.nan]), st.floats(-2, 5))
rows = st.tuples(ages, st.sampled_from(["f", "m", "?", None]), st.sampled_from([0, 1, 0, 1, 7, None]), outcomes)
tables = st.lists(rows, min_size=BASE, max_size=BASE)
configurations = st.fixed_dictionaries(
    {
        "split": st.sampled_from(["crossfit", "disjoint", "none"]),
        "learner": st.sampled_from(["r", "dr"]),
        "nuisance": st.sampled_from(["features", "moments", KnownPropensity(0.5)]),
        "second_stage": st.sampled_from(["features", "moments"]),
        "epsilon": st.sampled_from([0.05, 1.0, 40.0]),
        "diagnostics": st.sampled_from([(), NAMES, ("calibration",)]),
    }
)


class Recorder:
    """Stands where the noise is drawn: notes each statistic, releases it unchanged or as recorded before."""

    private = False

    def __init__(self, replay=None):
        self.statistics, self.released, self.sds, self._replay = [], [], [], replay

    def add(self, value, sd):
        self.statistics.append(value.copy())
        self.sds.append(sd)
        noise = np.random.default_rng(len(self.released)).normal(size=value.shape)
        self.released.append(self._replay[len(self.released)] if self._replay else value + sd * noise)
        return self.released[-1]


def run(monkeypatch, schema, table, configuration, replay=None):
    recorder = Recorder(replay)
    monkeypatch.setattr(dpcate.pipeline, "noise_source", lambda random_state: recorder)
    columns = ["age", "sex", "treated", "y", *(["id"] if schema.person else [])]
    frame = {name: [row[j] for row in table] for j, name in enumerate(columns)}
    estimator = PrivateCATE(schema, delta=1e-6, **configuration).fit(table=frame)
    return recorder, estimator.release_.charges


def assert_within_sensitivity(monkeypatch, schema, table, neighbour, configuration):
    first, charges = run(monkeypatch, schema, table, configuration)
    second, again = run(monkeypatch, schema, neighbour, configuration, replay=first.released)
    assert again == charges
    touched = []
    for one, other, charge in zip(first.statistics, second.statistics, charges, strict=True):
        shift = np.linalg.norm(one - other)
        assert shift <= charge.sensitivity * (1 + 1e-6), charge.name
        if shift > 0 and charge.rows != "all rows":
            touched.append(set(re.findall(r"\d+", charge.rows.split(" of ")[0])))
    assert not touched or set.intersection(*touched)
    assert first.sds == second.sds


@pytest.fixture(scope="module")
def monkeypatch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@settings(max_examples=60)
@given(tables, rows, st.integers(0, BASE - 1), configurations)
def test_replacing_any_row(monkeypatch, table, row, position, configuration):
    neighbour = [*table[:position], row, *table[position + 1 :]]
    assert_within_sensitivity(monkeypatch, SCHEMA, table, neighbour, {**configuration, "neighbours": "replace-one"})


@settings(max_examples=60)
@given(tables, st.integers(0, BASE - 1), configurations)
def test_removing_and_so_adding_any_row(monkeypatch, table, position, configuration):
    neighbour = [*table[:position], *table[position + 1 :]]
    configuration = {**configuration, "neighbours": "add-or-remove-one"}
    assert_within_sensitivity(monkeypatch, SCHEMA, table, neighbour, configuration)


@settings(max_examples=40)
@given(tables, st.lists(rows, min_size=1, max_size=4), st.integers(0, BASE - 1), configurations)
def test_replacing_a_person_with_more_rows_than_allowed(monkeypatch, table, theirs, position, configuration):
    named = [(*row, f"p{index}") for index, row in enumerate(table)]
    replaced = [(*row, f"p{position}") for row in theirs]
    neighbour = [*named[:position], *replaced, *named[position + 1 :]]
    configuration = {**configuration, "neighbours": "replace-one"}
    assert_within_sensitivity(monkeypatch, BY_PERSON, named, neighbour, configuration)


@settings(max_examples=40)
@given(tables, st.integers(0, 4), configurations)
def test_removing_a_person_with_all_rows(monkeypatch, table, person, configuration):
    named = [(*row, f"p{index % 5}") for index, row in enumerate(table)]
    neighbour = [row for row in named if row[-1] != f"p{person}"]
    configuration = {**configuration, "neighbours": "add-or-remove-one"}
    assert_within_sensitivity(monkeypatch, BY_PERSON, named, neighbour, configuration)
