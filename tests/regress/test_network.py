import dataclasses

import numpy as np
import pytest

from dpcate.bench.tuning import random_problem
from dpcate.errors import InputError
from dpcate.privacy import Accountant, Budget, Mechanisms, SampledGaussian, noise_source
from dpcate.regress import Network
from dpcate.regress.network import STEPS


def fit(problem, epsilon, seed=0, stage=None, **keywords):
    budget = Budget(epsilon=epsilon, delta=1e-5, neighbours=problem.neighbours)
    mechanisms = Mechanisms(Accountant(budget), noise_source(seed))
    model = (stage or Network()).fit(problem, mechanisms, budget.mu, "effect", **keywords)
    return model, mechanisms.accountant


@pytest.fixture(scope="module")
def fitted():
    tuning = random_problem(3, 1350, 2)
    return tuning, *fit(tuning.problem, 5.0)


def test_it_learns_heterogeneity(fitted):
    tuning, model, _ = fitted
    error = np.sqrt(np.mean((model.value(tuning.points) - tuning.effect) ** 2))
    assert error < 0.6 * tuning.effect.std()


def test_the_interval_covers_most_points(fitted):
    tuning, model, _ = fitted
    sd = model.sd(tuning.points, tuning.problem.reference)
    assert np.mean(np.abs(model.value(tuning.points) - tuning.effect) <= 1.645 * sd) > 0.75


def test_the_budget_is_spent_in_one_training_after_three_small_releases(fitted):
    _, _, accountant = fitted
    assert 4.9 < accountant.epsilon_spent() <= 5.0
    *small, training = accountant.charges
    assert [charge.name.split(": ")[1] for charge in small] == [
        "coarse constant", "score sizes", "refined constant", "score variance and curvature",
    ]  # fmt: skip
    assert isinstance(training.event, SampledGaussian)
    assert training.event.sampling_rate == 128 / 1350
    assert training.event.steps == round(STEPS * np.sqrt(1350 * accountant.budget.mu))
    assert training.sensitivity.proof == "sampled-sums"


def test_persons_with_several_rows_under_both_relations():
    plain = random_problem(4, 400, 1).problem
    person = np.repeat(np.arange(200), 2)
    for relation in ("replace-one", "add-or-remove-one"):
        rows = dataclasses.replace(plain, rows_per_person=2, person=person, n=200, neighbours=relation)
        stage = Network(hidden=(8,), epochs=2, members=2)
        model, accountant = fit(rows, 1.0, stage=stage, interval=False)
        assert np.isfinite(model.value(rows.reference)).all()
        assert accountant.epsilon_spent() <= 1.0
        assert accountant.charges[-1].event.steps == 4
        assert (model.sampling_sd, model.misfit_sd) == (0.0, 0.0)


def test_progress_is_reported():
    seen = []
    rows = random_problem(4, 200, 1).problem
    fit(
        rows,
        1.0,
        stage=Network(hidden=(4,), epochs=3, members=2),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (6, 6)
    assert len(seen) > 1


@pytest.mark.parametrize("settings", [{"members": 1}, {"hidden": (0,)}, {"activation": "x"}, {"epochs": -1}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        Network(**settings)
