"""Every second stage × learner × nuisance × split × neighbour relation: a release that loads and answers."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import dpcate
from dpcate import KnownNuisances, KnownPropensity, Private, PrivateCATE, Public, Release, SuppliedNuisances
from dpcate.errors import InputError

ROWS = 160
DATA = dpcate.datasets.synthetic(1, ROWS, seed=3)
ELSEWHERE = dpcate.datasets.synthetic(1, 400, seed=4)
QUERY = np.random.default_rng(0).random((8, 2))


def x0(columns):
    return columns["x0"]


def outcome_model():
    return Private(model=Ridge(), epsilon=0.1, delta=1e-9, neighbours="add-or-remove-one")


NUISANCES = {
    "moments": "moments",
    "features": "features",
    "network": "network",
    "known propensity": KnownPropensity(lambda columns: 0.5 + 0.1 * columns["x0"]),
    "known": KnownNuisances(propensity=0.5, outcome=x0, outcome_control=x0, outcome_treated=x0),
    "supplied": SuppliedNuisances(
        propensity=Public(LogisticRegression().fit(ELSEWHERE.X, ELSEWHERE.T)),
        outcome=outcome_model(),
        outcome_control=outcome_model(),
        outcome_treated=outcome_model(),
    ),
}
COMBINATIONS = list(
    itertools.product(
        ["moments", "features", "kernel", "network"],
        ["r", "dr"],
        NUISANCES,
        ["crossfit", "disjoint", "none"],
        ["replace-one", "add-or-remove-one"],
    )
)


@pytest.mark.parametrize(("second_stage", "learner", "nuisance", "split", "neighbours"), COMBINATIONS)
def test_it_fits_spends_its_budget_and_answers_from_its_file(
    second_stage, learner, nuisance, split, neighbours, tmp_path
):
    model = PrivateCATE(
        DATA.schema,
        epsilon=4.0,
        delta=1e-5,
        second_stage=second_stage,
        learner=learner,
        nuisance=NUISANCES[nuisance],
        split=split,
        neighbours=neighbours,
        random_state=0,
    ).fit(DATA.Y, DATA.T, X=DATA.X)
    release = model.release_
    release.save(tmp_path / "release.json")
    loaded = Release.load(tmp_path / "release.json")
    assert loaded == release
    assert loaded.guarantee == "proven"
    low, high = loaded.effect_interval(QUERY)
    effect = loaded.effect(QUERY)
    assert np.isfinite(effect).all()
    assert (np.abs(effect) <= DATA.schema.outcome.range).all()
    assert (low < high).all()


@pytest.mark.parametrize("second_stage", ["features", "kernel", "network"])
def test_queries_restrict_what_is_released(second_stage):
    model = PrivateCATE(
        DATA.schema, epsilon=4.0, delta=1e-5, second_stage=second_stage, queries=QUERY, random_state=0
    ).fit(DATA.Y, DATA.T, X=DATA.X)
    low, high = model.effect_interval(QUERY[::-1])
    assert (low < high).all()
    assert np.array_equal(model.effect(QUERY[::-1]), model.effect(QUERY)[::-1])
    with pytest.raises(dpcate.errors.ReleaseError, match="declared points only"):
        model.effect(DATA.X[:1])


def test_the_kernel_leaves_an_oracle_with_the_curator(tmp_path):
    model = PrivateCATE(DATA.schema, epsilon=4.0, delta=1e-5, second_stage="kernel", random_state=0)
    model.fit(DATA.Y, DATA.T, X=DATA.X)
    oracle = model.kept_
    published = np.asarray(model.release_.model.points[:5])
    assert np.allclose(oracle.effect(published), model.release_.model.value(published), atol=1e-4)
    first = oracle.effect(QUERY)
    oracle.save(tmp_path / "state")
    oracle.close()
    assert np.array_equal(dpcate.KernelOracle.open(tmp_path / "state", random_state=1).effect(QUERY), first)


def test_more_rows_than_the_exact_kernel_takes_are_refused_before_anything_is_spent():
    many = dpcate.datasets.synthetic(1, 7000, seed=0)
    model = PrivateCATE(many.schema, epsilon=1.0, delta=1e-5, second_stage="kernel", random_state=0)
    with pytest.raises(InputError, match="use second_stage='features'"):
        model.fit(many.Y, many.T, X=many.X)
