"""Brute force over neighbouring tables, through the whole fit.

A first fit records every statistic that reaches the mechanisms and every number that leaves them. A second fit
on a neighbouring table is fed the same released numbers, so each statistic is computed with the same public
parameters: the two may differ by at most the declared sensitivity, and in one part of the rows only.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcate.pipeline
from dpcate import Category, KnownPropensity, Number, Outcome, PrivateCATE, Schema
from dpcate.diagnostics import NAMES
from dpcate.regress.moments import rules
from dpcate.regress.moments.rounds import Block, Slope

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

    def __init__(self, replay=None, loudness=1.0):
        self.statistics, self.released, self.sds, self._replay = [], [], [], replay
        self._loudness = loudness

    def add(self, value, sd):
        self.statistics.append(value.copy())
        self.sds.append(sd)
        noise = np.random.default_rng(len(self.released)).normal(size=value.shape)
        noisy = value + self._loudness * sd * noise
        self.released.append(self._replay[len(self.released)] if self._replay else noisy)
        return self.released[-1]


def fitted(monkeypatch, schema, frame, configuration, **recording):
    """What reached the mechanisms, what left them, and the release."""
    recorder = Recorder(**recording)
    monkeypatch.setattr(dpcate.pipeline, "noise_source", lambda random_state: recorder)
    return recorder, PrivateCATE(schema, delta=1e-6, **configuration).fit(table=frame).release_


def assert_within_sensitivity(monkeypatch, schema, table, neighbour, configuration):
    columns = ["age", "sex", "treated", "y", *(["id"] if schema.person else [])]
    frame, replaced = (
        {name: [row[j] for row in each] for j, name in enumerate(columns)} for each in (table, neighbour)
    )
    first, release = fitted(monkeypatch, schema, frame, configuration)
    second, again = fitted(monkeypatch, schema, replaced, configuration, replay=first.released)
    assert_close(first, release.charges, second, again.charges)


def assert_close(first, charges, second, again):
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


MANY = 600
CROWD = {
    **{f"even{j}": Number(0, 1) for j in range(4)},
    "close": Number(0, 1),
    "amount": Number(0, 1000, typical=20),
    "sex": Category(["f", "m"]),
}


def crowd(binary):
    """Enough people for every rule to matter: effects of two even columns and their product, and a near copy of one."""
    rng = np.random.default_rng(11)
    even = rng.random((MANY, 4))
    treated = (rng.random(MANY) < 0.3 + 0.4 * even[:, 0]).astype(int)
    effect = 2 + np.sin(5 * even[:, 0]) + 2 * even[:, 1] + 4 * (even[:, 0] - 0.5) * (even[:, 1] - 0.5)
    y = even[:, 0] + effect * treated + 0.1 * rng.normal(size=MANY)
    frame = {f"even{j}": even[:, j].tolist() for j in range(4)}
    frame["close"] = np.clip(even[:, 0] + 0.02 * rng.normal(size=MANY), 0, 1).tolist()
    frame["amount"] = rng.lognormal(3, 1, MANY).tolist()
    frame["sex"] = rng.choice(["f", "m"], MANY).tolist()
    frame["treated"], frame["y"] = treated.tolist(), ((y > 3).astype(float) if binary else y).tolist()
    return frame


def with_another_person(frame, rng):
    """The same table with one row replaced, mostly by a corner of the schema."""
    place, corner = rng.integers(MANY), rng.choice([0.0, 1.0, np.nan, 1e12])
    row = dict.fromkeys(frame, corner) | {
        "amount": float(rng.choice([0.0, 1000.0, 20.0])),
        "sex": str(rng.choice(["f", "m", "?"])),
        "treated": int(rng.integers(2)),
        "y": float(rng.choice([-1e300, -2.0, 0.0, 1.0, 8.0])),
    }
    return {name: [*column[:place], row[name], *column[place + 1 :]] for name, column in frame.items()}


def release_named(part):
    return lambda seen: any(part in name for name in seen.names)


def no_release_named(part):
    return lambda seen: not any(part in name for name in seen.names)


TINY, MEDIUM, LARGE = {"epsilon": 0.05}, {"epsilon": 2.0}, {"epsilon": 40.0}
LOUD = {**MEDIUM, "loudness": 25.0}
BRANCHES = {
    "second moments": (LARGE, release_named("second moments")),
    "no second moments": (TINY, no_release_named("second moments")),
    "last residual sizes": ({**LARGE, "learner": "dr"}, release_named("last residual sizes")),
    "five late rounds": (MEDIUM, lambda seen: seen.scores[-1] == "effect and outcome: round 5, scores"),
    "four late rounds": (TINY, lambda seen: seen.scores[-1] == "effect and outcome: round 4, scores"),
    "gentler clips": (LARGE, lambda seen: max(seen.gentle) > 1.2),
    "sterner clips": (TINY, lambda seen: min(seen.gentle) < 0.9),
    "degree 3": (TINY, lambda seen: seen.degree == 3),
    "higher degrees": (LARGE, lambda seen: seen.degree > 4),
    "products": (LARGE, lambda seen: any(len(term) == 2 for term in seen.terms)),
    "steps made shorter": (LOUD, lambda seen: seen.shortened > 0),
    "steps taken back": (LOUD, lambda seen: seen.slopes > 2 * seen.shortened),
    "two values": ({**LARGE, "binary": True}, no_release_named("residual sizes")),
    "two values and noise": ({**TINY, "binary": True}, no_release_named("residual sizes")),
    "a known propensity": ({**MEDIUM, "nuisance": KnownPropensity(0.5)}, no_release_named("propensity")),
    "a second stage that goes on": ({**MEDIUM, "learner": "dr"}, release_named("effect: round 4")),
    "a second stage anew": ({**LARGE, "split": "crossfit"}, release_named("effect: round 7")),
    "its second moments": ({**LARGE, "split": "crossfit"}, release_named("effect: second moments")),
    "a private number of persons": (
        {**MEDIUM, "neighbours": "add-or-remove-one"},
        release_named("number of persons"),
    ),
}


@pytest.mark.parametrize("branch", BRANCHES)
def test_every_branch_of_the_public_rules(branch):
    """The branch is seen to be taken, and no row, however extreme, moves a release by more than its sensitivity."""
    asked, taken = BRANCHES[branch]
    chosen = {"neighbours": "replace-one", **asked}
    binary, loudness = chosen.pop("binary", False), chosen.pop("loudness", 1.0)
    low, high = (0.0, 1.0) if binary else (-2.0, 8.0)
    schema = Schema(covariates=CROWD, treatment="treated", outcome=Outcome("y", low=low, high=high, binary=binary))
    frame, rng = crowd(binary), np.random.default_rng(sorted(BRANCHES).index(branch))
    with pytest.MonkeyPatch.context() as patch:
        seen = watched(patch)
        first, release = fitted(patch, schema, frame, chosen, loudness=loudness)
        seen.names = [charge.name for charge in release.charges]
        seen.scores = [name for name in seen.names if name.endswith("scores")]
        seen.terms = release.model.terms
        seen.degree = max(degree for term in seen.terms for _, degree in term)
        assert taken(seen)
        for _ in range(6):
            neighbour = with_another_person(frame, rng)
            if chosen["neighbours"] == "add-or-remove-one":
                gone = rng.integers(MANY)
                neighbour = {name: [*column[:gone], *column[gone + 1 :]] for name, column in frame.items()}
            second, again = fitted(patch, schema, neighbour, chosen, replay=first.released)
            assert_close(first, release.charges, second, again.charges)


def watched(patch):
    """Notes how gentle clips were, how often a step was made shorter, and how often slopes were made steeper: twice for
    each such step, and apart from these where steps are taken back."""
    seen = SimpleNamespace(gentle=[], shortened=0, slopes=0)
    gentleness, shorter, steeper = rules.gentleness, Block.steeper, Slope.steeper

    def gentle(*settings):
        seen.gentle.append(gentleness(*settings))
        return seen.gentle[-1]

    def block_steeper(block):
        seen.shortened += 1
        return shorter(block)

    def slope_steeper(slope):
        seen.slopes += 1
        return steeper(slope)

    patch.setattr(rules, "gentleness", gentle)
    patch.setattr(Block, "steeper", block_steeper)
    patch.setattr(Slope, "steeper", slope_steeper)
    return seen
