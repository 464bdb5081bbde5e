import math

import numpy as np
import pytest
from typer.testing import CliRunner

from dpcate import PrivateCATE
from dpcate.bench.interplay import correlated_trial, product_trial
from dpcate.bench.parts import DATA, PARTS, Change, Part, measure, untypical
from dpcate.bench.problems import Trial
from dpcate.cli import app
from dpcate.errors import InputError
from dpcate.schema import Category, Number, Outcome, Schema


def changes(part, data, epsilon=5.0, seeds=range(1)):
    return list(measure(seeds, [part], [data], [epsilon], lambda text, done: None))


def fitted(trial, without="nothing"):
    estimator = PrivateCATE(trial.schema, epsilon=5.0, delta=1e-5, random_state=0)
    with {**PARTS, "nothing": Part("nothing")}[without].taken_away():
        return estimator.fit(trial.Y, trial.T, X=trial.X).release_


@pytest.mark.parametrize("name", PARTS)
def test_what_is_taken_away_comes_back(name):
    part = PARTS[name]
    before = [getattr(place, rule) for place, rule, _ in part.rules]
    with part.taken_away():
        assert all(getattr(place, rule) is answer for place, rule, answer in part.rules)
    assert all(getattr(place, rule) is old for (place, rule, _), old in zip(part.rules, before, strict=True))


@pytest.mark.parametrize("name", [name for name, part in PARTS.items() if part.rules])
def test_every_rule_changes_a_fit_and_leaves_no_trace(name):
    """Products of correlated columns, steps of single ones: some trial sees each rule, and fits are then as before."""
    trials = [correlated_trial(0), DATA["Datasets 1, 2"]["synthetic 2, 3000"](0), DATA["steps"]["steps, 2 columns"](0)]
    before = [fitted(trial).model for trial in trials]
    assert any(fitted(trial, name).model != model for trial, model in zip(trials, before, strict=True))
    assert [fitted(trial).model for trial in trials] == before


def test_without_products_there_are_none():
    trial = product_trial(0)
    assert max(len(term) for term in fitted(trial).model.terms) == 2
    assert max(len(term) for term in fitted(trial, "products of columns").model.terms) == 1


def test_without_second_moments_nothing_is_spent_on_them():
    trial = correlated_trial(0)
    charged = [charge.name for charge in fitted(trial).charges]
    without = [charge.name for charge in fitted(trial, "second moments of correlated columns").charges]
    assert [name for name in charged if name not in without] == ["nuisances: second moments"]


def test_what_is_typical_is_forgotten_and_nothing_else():
    schema = Schema(
        covariates={"income": Number(0, 1000, unit="k", typical=30), "sex": Category(["f", "m"])},
        treatment="treated",
        outcome=Outcome("y", low=0, high=1),
    )
    forgotten = untypical(Trial(*5 * [np.zeros(0)], schema)).schema
    assert forgotten.covariates == {"income": Number(0, 1000, unit="k"), "sex": Category(["f", "m"])}
    assert (forgotten.treatment, forgotten.outcome) == (schema.treatment, schema.outcome)


def test_a_part_that_data_do_not_have_changes_nothing():
    (change,) = changes("what is typical of skewed columns", "steps")
    assert (change.mean, change.error) == (0.0, 0.0)


def test_changes_are_means_of_logarithms():
    """Noise that is spread evenly over 31 columns drowns the two that matter."""
    (both,) = changes("noise where it costs least", "Datasets 1, 2", seeds=range(2))
    single = [changes("noise where it costs least", "Datasets 1, 2", seeds=range(k, k + 1))[0].mean for k in range(2)]
    assert both.mean == pytest.approx(np.mean(single))
    assert both.mean > 0.2
    assert 0 < both.error < both.mean
    assert Change("", "", math.log(1.5), 0.1).percent == pytest.approx((50.0, 15.0))


def test_the_command_prints_a_line_per_part_and_data():
    asked = ["--without", "products of columns", "--without", "slopes are learned", "--only", "steps"]
    run = CliRunner().invoke(app, ["bench", "parts", "--seeds", "1", *asked, "--quiet"])
    assert run.exit_code == 0
    lines = run.output.strip().splitlines()
    assert lines[0] == "part,data,change_percent,standard_error"
    assert [line.rsplit(",", 2)[0] for line in lines[1:]] == [
        '"products of columns","steps"',
        '"slopes are learned","steps"',
    ]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(["--only", "IHDP"], "no data 'IHDP'; there are 'Datasets 1, 2', "), (["--without", "x"], "no part 'x'; there")],
)
def test_what_is_not_there_is_refused(asked, answer):
    refused = CliRunner().invoke(app, ["bench", "parts", *asked])
    assert isinstance(refused.exception, InputError)
    assert answer in str(refused.exception)
