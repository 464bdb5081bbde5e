"""Made-up people are as declared: their moments by large samples, their rows by the schema alone."""

import numpy as np
import pytest

import dpcate
from dpcate.data import read_rows
from dpcate.encoding import encode_covariates, reference_points
from dpcate.errors import InputError
from dpcate.planning.standin import Assumptions, StandIn

SCHEMA = dpcate.Schema(
    covariates={
        "age": dpcate.Number(18, 98),
        "ward": dpcate.Category(["a", "b", "c"]),
        "weight": dpcate.Number(40, 140),
    },
    treatment=dpcate.Treatment("drug", control="no", treated="yes"),
    outcome=dpcate.Outcome("score", low=10, high=70),
)
BINARY = dpcate.Schema(
    covariates={"age": dpcate.Number(18, 98), "weight": dpcate.Number(40, 140)},
    treatment="drug",
    outcome=dpcate.Outcome("died", low=0, high=1, binary=True),
)
ROWS = 200_000


def assumed(schema, **guesses):
    return Assumptions.of(schema, **{"outcome_sd": None, "effect_sd": None, "treated": None, **guesses})


def test_the_people_have_the_declared_spreads():
    stand_in = StandIn(SCHEMA, assumed(SCHEMA, outcome_sd=8.0, effect_sd=3.0, treated=0.3))
    table = stand_in.table(ROWS, seed=0)
    x, present = encode_covariates(SCHEMA, table)
    treated, effect = table["drug"] == "yes", stand_in.effect(x)
    assert present.all()
    assert treated.mean() == pytest.approx(0.3, abs=0.01)
    assert table["score"].std() == pytest.approx(8.0, rel=0.02)
    assert (effect.mean(), effect.std()) == pytest.approx((3.0, 3.0), rel=0.02)
    assert np.bincount(x[:, 1:4].argmax(axis=1)) / ROWS == pytest.approx([1 / 3] * 3, abs=0.01)
    assert 18 <= table["age"].min() <= 18.1
    assert 97.9 <= table["age"].max() <= 98
    # the effect is what treatment does: a regression on treatment and its interaction with the effect's own shape
    design = np.column_stack([np.ones(ROWS), effect, treated, treated * effect])
    slopes = np.linalg.lstsq(design, table["score"], rcond=None)[0]
    assert slopes[2:] == pytest.approx([0.0, 1.0], abs=0.15)


def test_a_binary_outcome_takes_two_values_at_the_declared_rate():
    stand_in = StandIn(BINARY, assumed(BINARY, outcome_sd=0.3, effect_sd=0.05))
    table = stand_in.table(ROWS, seed=1)
    assert set(np.unique(table["died"])) == {0.0, 1.0}
    assert table["died"].mean() == pytest.approx(0.1, abs=0.01)  # 0.1·0.9 = 0.3²
    x, _ = encode_covariates(BINARY, table)
    effect, treated = stand_in.effect(x), table["drug"] == 1
    assert table["died"][treated].mean() - table["died"][~treated].mean() == pytest.approx(effect.mean(), abs=0.01)


def test_persons_own_as_many_rows_as_they_may():
    schema = dpcate.Schema(
        covariates=SCHEMA.covariates,
        treatment=SCHEMA.treatment,
        outcome=SCHEMA.outcome,
        person="id",
        max_rows_per_person=4,
    )
    rows = read_rows(schema, table=StandIn(schema, assumed(schema)).table(1000, seed=0))
    assert rows.persons == 250
    assert rows.present.all()


def test_what_is_known_takes_the_place_of_what_is_assumed():
    known = dpcate.KnownNuisances(
        propensity=lambda columns: 0.2 + 0.5 * (columns["age"] > 58),
        outcome_control=lambda columns: 30 + 0.1 * columns["weight"],
        outcome_treated=lambda columns: 35 + 0.1 * columns["weight"],
    )
    stand_in, x = StandIn(SCHEMA, assumed(SCHEMA), known), reference_points(SCHEMA)
    assert stand_in.effect(x) == pytest.approx(5.0)
    table = stand_in.table(ROWS, seed=2)
    old = table["age"] > 58
    assert (table["drug"][old] == "yes").mean() == pytest.approx(0.7, abs=0.01)
    assert (table["drug"][~old] == "yes").mean() == pytest.approx(0.2, abs=0.01)
    assert StandIn(SCHEMA, assumed(SCHEMA), dpcate.KnownPropensity(0.9)).propensity(x) == pytest.approx(0.9)


def test_people_differ_by_seed_and_only_by_it():
    stand_in = StandIn(SCHEMA, assumed(SCHEMA))
    first, again, other = (stand_in.table(50, seed)["score"] for seed in (0, 0, 1))
    assert (first == again).all()
    assert not (first == other).any()


def test_guesses_default_to_parts_of_the_range():
    assert assumed(SCHEMA) == Assumptions(outcome_sd=10.0, effect_sd=2.5, treated=0.5)
    assert assumed(BINARY).outcome_sd == pytest.approx(0.4)
    assert assumed(SCHEMA, outcome_sd=6).effect_sd == 1.5


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        ({"outcome_sd": 0}, "outcome_sd must lie above 0"),
        ({"outcome_sd": 18}, "at most 17.4"),
        ({"outcome_sd": float("nan")}, "outcome_sd"),
        ({"outcome_sd": True}, "outcome_sd"),
        ({"effect_sd": -1}, "effect_sd must lie above 0"),
        ({"effect_sd": 10.5}, "at most 10"),
        ({"treated": 1}, "share of persons who are treated"),
        ({"treated": "half"}, "share of persons who are treated"),
    ],
)
def test_impossible_guesses_are_refused(guess, message):
    with pytest.raises(InputError, match=message):
        assumed(SCHEMA, **guess)
