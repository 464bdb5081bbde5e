import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import dpcate
from dpcate import (
    Category,
    Features,
    KnownNuisances,
    KnownPropensity,
    Number,
    Outcome,
    PrivateCATE,
    Schema,
)
from dpcate.errors import DataError, InputError

DATA = dpcate.datasets.synthetic(1, 400, seed=3)
QUERY = np.random.default_rng(0).random((20, 2))


def estimator(**changes):
    return PrivateCATE(DATA.schema, **{"epsilon": 1.0, "delta": 1e-6, "random_state": 0, **changes})


def fitted(**changes):
    return estimator(**changes).fit(DATA.Y, DATA.T, X=DATA.X)


def test_tables_of_every_kind_give_the_same_release(tmp_path):
    frame = pd.DataFrame({"x0": DATA.X[:, 0], "x1": DATA.X[:, 1], "treated": DATA.T, "outcome": DATA.Y, "more": "?"})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    arrays = fitted().release_
    sources = [frame, pl.from_pandas(frame), pl.from_pandas(frame).to_arrow(), tmp_path / "rows.csv"]
    sources += [str(tmp_path / "rows.parquet"), frame.to_dict("list")]
    for source in sources:
        assert estimator().fit(table=source).release_ == arrays
    by_series = estimator().fit(frame["outcome"], frame["treated"], X=frame[["x1", "x0"]]).release_
    assert by_series == arrays


def test_a_seed_makes_it_reproducible_and_not_private():
    assert fitted().release_ == fitted().release_
    assert not fitted().release_.private
    secure = fitted(random_state=None)
    assert secure.release_.private
    assert secure.release_ != fitted(random_state=None).release_


def test_scikit_learn_conventions():
    original = estimator(split="none", learner="dr")
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    assert copy.set_params(epsilon=2.0).epsilon == 2.0
    assert not hasattr(copy, "release_")
    with pytest.raises(InputError, match="call fit first"):
        copy.effect(QUERY)


def test_more_budget_brings_the_effect_closer_to_the_truth():
    data = dpcate.datasets.synthetic(1, 3000, seed=11)

    def error(epsilon):
        runs = []
        for seed in range(5):
            model = PrivateCATE(data.schema, epsilon=epsilon, delta=1e-5, random_state=seed)
            runs.append(np.sqrt(np.mean((model.fit(data.Y, data.T, X=data.X).effect(data.X) - data.tau) ** 2)))
        return np.mean(runs)

    errors = [error(epsilon) for epsilon in (0.1, 1.0, 20.0)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.5 < data.tau.std()


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    covered = []
    for seed in range(20):
        data = dpcate.datasets.synthetic(1, 3000, seed=500 + seed)
        model = PrivateCATE(data.schema, epsilon=5.0, delta=1e-5, random_state=seed).fit(data.Y, data.T, X=data.X)
        low, high = model.effect_interval(data.X, alpha=0.1)
        covered.append(np.mean((low <= data.tau) & (data.tau <= high)))
    assert 0.8 <= np.mean(covered) <= 0.99


def test_average_over_public_rows():
    model = fitted()
    assert model.ate(QUERY) == pytest.approx(model.effect(QUERY).mean())
    assert model.ate() == model.ate(None) == model.release_.average.value
    with pytest.raises(InputError, match="no row with all covariates"):
        model.ate(np.full((3, 2), np.nan))


@pytest.mark.parametrize(
    "hostile",
    [
        {"T": np.zeros(400)}, {"T": np.ones(400)}, {"T": np.full(400, 9)}, {"Y": np.full(400, 2.0)},
        {"Y": np.full(400, np.nan)}, {"Y": np.full(400, 1e300)}, {"X": np.full((400, 2), np.nan)},
        {"X": np.zeros((400, 2))}, {"Y": np.array(["?"] * 400)},
    ],
)  # fmt: skip
@pytest.mark.parametrize("learner", ["r", "dr"])
def test_what_single_rows_contain_never_decides_whether_a_release_appears(hostile, learner):
    rows = {"Y": DATA.Y, "T": DATA.T, "X": DATA.X, **hostile}
    release = estimator(learner=learner).fit(**rows).release_
    assert np.isfinite(release.effect(QUERY)).all()
    assert np.abs(release.effect(QUERY)).max() <= DATA.schema.outcome.range
    assert (np.diff(release.effect_interval(QUERY), axis=0) > 0).all()


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_too_few_rows(neighbours):
    few = {"Y": DATA.Y[:5], "T": DATA.T[:5], "X": DATA.X[:5]}
    if neighbours == "replace-one":  # the number of persons is public
        with pytest.raises(DataError, match="too few rows: at least 10"):
            estimator(neighbours=neighbours).fit(**few)
    else:  # it is private: a refusal would tell it
        assert estimator(neighbours=neighbours).fit(**few).release_.persons >= 10


def test_the_number_of_persons_is_noisy_when_it_is_private():
    counts = {fitted(neighbours="add-or-remove-one", random_state=seed).release_.persons for seed in range(5)}
    assert len(counts) > 1
    assert fitted().release_.persons == 400


def test_binary_outcomes_and_categories():
    rng = np.random.default_rng(1)
    schema = Schema(
        covariates={"age": Number(18, 100), "sex": Category(["f", "m"])},
        treatment=dpcate.Treatment("drug", control="no", treated="yes"),
        outcome=Outcome("died", low=0, high=1, binary=True),
    )
    n = 20_000
    sex, drug = rng.choice(["f", "m"], n), rng.choice(["no", "yes"], n)
    risk = 0.4 - np.where((drug == "yes") & (sex == "m"), 0.3, 0.0)
    table = {
        "age": rng.uniform(18, 100, n),
        "sex": sex,
        "drug": drug,
        "died": (rng.random(n) < risk).astype(int),
    }
    model = PrivateCATE(schema, epsilon=5.0, delta=1e-6, nuisance=KnownPropensity(0.5), random_state=0).fit(table=table)
    female, male = model.effect({"age": [50, 50], "sex": ["f", "m"]})
    assert abs(female) < 0.1
    assert male == pytest.approx(-0.3, abs=0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon must"), ({"epsilon": -1.0}, "epsilon must"), ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta must"), ({"delta": 0}, "delta must"), ({"delta": float("nan")}, "delta must"),
        ({"neighbours": "swap"}, "neighbours must"), ({"split": "half"}, "split must"), ({"learner": "x"}, "learner"),
        ({"second_stage": "forest"}, "second_stage must"), ({"nuisance": "forest"}, "nuisance must"),
        ({"propensity_floor": 0.5}, "propensity_floor"), ({"propensity_floor": float("nan")}, "propensity_floor"),
        ({"random_state": -3}, "random_state"), ({"ledger": "sqlite://"}, "ledger"), ({"schema": {}}, "schema must"),
        ({"nuisance": KnownNuisances(propensity=0.5)}, "needs KnownNuisances to give outcome"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_before_rows_are_read(changes, message):
    with pytest.raises(InputError, match=message) as refusal:
        estimator().set_params(**changes).fit(table="a file that does not exist.csv")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, float("nan"), "half"])
def test_bad_known_propensity_is_refused(probability):
    with pytest.raises(InputError, match="between 0 and 1"):
        KnownPropensity(probability)


def test_ways_to_pass_rows():
    for rows in ({}, {"Y": DATA.Y}, {"Y": DATA.Y, "T": DATA.T}, {"Y": DATA.Y, "table": {}}):
        with pytest.raises(DataError, match="Y, T and X"):
            estimator().fit(**rows)
    with pytest.raises(DataError, match="same number of rows"):
        estimator().fit(DATA.Y[:-1], DATA.T, X=DATA.X)


def test_any_weight_is_a_learner():
    overlap = dpcate.Weight("overlap", lambda p: p * (1 - p), lambda p: 1 - 2 * p)
    release = fitted(learner=overlap).release_
    assert release.spec.learner == "overlap"
    assert np.isfinite(release.effect(QUERY)).all()


@pytest.mark.parametrize("split", ["crossfit", "disjoint", "none"])
def test_every_part_meets_the_whole_budget_and_no_more(split):
    release = fitted(split=split).release_
    mu = dpcate.privacy.Budget(epsilon=1.0, delta=1e-6).mu
    for part in ("part 1 of 2", "part 2 of 2"):
        met = [charge.spent.mu for charge in release.charges if charge.rows in ("all rows", part)]
        assert np.linalg.norm(met) == pytest.approx(mu, rel=1e-9)


def test_settings_object_equals_its_name():
    assert fitted(second_stage=Features()).release_ == fitted(second_stage="features").release_


def test_known_nuisances_cost_nothing_and_split_the_budget_not_at_all():
    known = KnownNuisances(
        propensity=0.5, outcome=lambda columns: columns["x0"], outcome_control=lambda columns: columns["x0"],
        outcome_treated=lambda columns: 2 * columns["x0"],
    )  # fmt: skip
    for learner in ("r", "dr"):
        charges = fitted(nuisance=known, learner=learner, split="none").release_.charges
        assert all(charge.name.startswith(("effect", "columns", "average effect")) for charge in charges)


def test_simultaneous_intervals_are_wider_and_the_releases_own():
    model = fitted()
    single, together = (model.effect_interval(QUERY, simultaneous=flag) for flag in (False, True))
    widest = DATA.schema.outcome.high - DATA.schema.outcome.low  # an effect cannot be larger
    assert ((together[0] < single[0]) | (single[0] == -widest)).all()
    assert ((single[1] < together[1]) | (single[1] == widest)).all()
    assert (together[1] - together[0] > 1.1 * (single[1] - single[0])).mean() > 0.5
    np.testing.assert_array_equal(together, model.release_.effect_interval(QUERY, simultaneous=True))


def test_what_is_typical_of_a_skewed_column_is_worth_declaring():
    errors = {}
    for typical in (None, 40):
        income = dpcate.Number(0, 1000, typical=typical)
        schema = dpcate.Schema(covariates={"income": income}, treatment="t", outcome=dpcate.Outcome("y", 0, 10))
        for seed in range(4):
            rng = np.random.default_rng(seed)
            earned, treated = np.exp(rng.normal(3.6, 0.7, 4000)).clip(0, 1000), rng.integers(0, 2, 4000)
            effect = np.log(earned / 40)
            fitted = dpcate.PrivateCATE(schema, epsilon=0.25, delta=1e-6, random_state=seed).fit(
                5 + treated * effect + rng.normal(0, 0.5, 4000), treated, X=earned[:, None]
            )
            errors.setdefault(typical, []).append(np.sqrt(np.mean((fitted.effect(earned[:, None]) - effect) ** 2)))
    assert np.mean(errors[40]) < 0.7 * np.mean(errors[None])
