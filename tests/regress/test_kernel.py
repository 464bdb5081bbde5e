import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcate import datasets
from dpcate.datasets.synthetic import true_effect
from dpcate.encoding import encode_covariates, reference_points
from dpcate.errors import InputError
from dpcate.models.kernel import KernelModel
from dpcate.models.kernels import gram
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.privacy.path import NoisePath
from dpcate.regress.huber import huber_minimiser
from dpcate.regress.kernel import JITTER, MOST_ROWS, Kernel, prior_sd
from dpcate.regress.problem import Problem


def problem(n=120, width=2, seed=0, **changes):
    rng = np.random.default_rng(seed)
    x, w = rng.random((n, width)), rng.choice([-0.5, 0.5], size=n)
    plain = Problem(
        x=x,
        rho=w * w,
        rho_phi=w * (w * (2 + np.sin(4 * x[:, 0])) + rng.uniform(-1, 1, n)),
        reference=rng.random((256, width)),
        n=n,
        span=10.0,
        curvature=0.25,
        multiplier=0.5,
        two_valued=False,
        neighbours="replace-one",
        rows_per_person=1,
        part=None,
    )
    return dataclasses.replace(plain, **changes)


def oracle(rows, settings=None, seed=0, epsilon=1.0):
    budget = Budget(epsilon=epsilon, delta=1e-6, neighbours=rows.neighbours)
    mechanisms = Mechanisms(Accountant(budget), noise_source(seed))
    return (settings or Kernel()).fit_oracle(rows, mechanisms, budget.mu, "test"), mechanisms.accountant


# The fits.


def test_huber_is_the_minimiser_on_explicit_features(monkeypatch):
    """For a kernel with finitely many features, the dual solution is φ(x)'θ with θ from the primal problem."""
    rng = np.random.default_rng(1)
    omega = rng.normal(size=(3, 2))

    def phi(x):
        return np.concatenate([np.cos(x @ omega.T), np.sin(x @ omega.T)], axis=1) / math.sqrt(3)

    monkeypatch.setattr("dpcate.regress.kernel.gram", lambda kind, h, A, B: phi(A) @ phi(B).T)
    monkeypatch.setattr("dpcate.regress.kernel.GRADIENT_TOLERANCE", 1e-8)
    rows, bound, penalty = problem(), 0.3, 0.05
    fitted = Kernel().regression(rows, 2.0, bound, penalty)
    theta = huber_minimiser(
        phi(rows.x), rows.rho, rows.scores(2.0), n=rows.n, score_bound=bound, penalty=penalty, tolerance=1e-12
    )
    assert np.allclose(phi(fitted.rows).T @ fitted.dual, theta, atol=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "matern32", "matern52"])
def test_huber_meets_its_own_optimality_condition(kind):
    """αᵢ = −clip(ρᵢg(xᵢ) − ψᵢ, ±B)/(λn), and some scores are clipped."""
    rows, bound, penalty = problem(n=200), 0.3, 0.05
    fitted = Kernel(kind=kind).regression(rows, 2.0, bound, penalty)
    g = fitted.kernel(rows.x, rows.x) @ fitted.dual
    scores = rows.rho * g - rows.scores(2.0)
    assert (np.abs(scores) > bound).any()
    assert (np.abs(scores) < bound).any()
    residual = fitted.dual + np.clip(scores, -bound, bound) / (penalty * rows.n)
    assert math.sqrt(residual @ fitted.kernel(rows.x, rows.x) @ residual) < 1e-4 * bound / (penalty * rows.n)


def test_ridge_is_the_closed_form():
    rows = problem()
    fitted = Kernel(loss="ridge").regression(rows, 2.0, 1e3, 0.05)
    w = np.sqrt(rows.rho)
    t = rows.scores(2.0) / w
    K = gram("gaussian", 0.2 * math.sqrt(2), rows.x, rows.x)
    expected = np.linalg.solve((w[:, None] ** 2 * K) / rows.n + 0.05 * np.eye(rows.n), w * t / rows.n)
    assert np.allclose(fitted.dual, expected, atol=1e-12)


def test_without_clipping_both_losses_agree():
    rows = problem()
    huber, ridge = (Kernel(loss=loss).regression(rows, 2.0, 1e3, 0.05) for loss in ("huber", "ridge"))
    x = rows.reference
    assert np.allclose(huber.kernel(x, rows.x) @ huber.dual, ridge.kernel(x, rows.x) @ ridge.dual, atol=1e-3)


@pytest.mark.parametrize("loss", ["huber", "ridge"])
def test_absent_rows_change_nothing(loss):
    rows = problem()
    half = np.arange(rows.n) < 60
    absent = dataclasses.replace(rows, rho=rows.rho * half, rho_phi=rows.rho_phi * half)
    few = dataclasses.replace(rows, x=rows.x[:60], rho=rows.rho[:60], rho_phi=rows.rho_phi[:60])
    one, other = (Kernel(loss=loss).regression(data, 2.0, 0.3, 0.05) for data in (absent, few))
    assert np.array_equal(one.dual, other.dual)
    nobody = dataclasses.replace(rows, rho=0 * rows.rho, rho_phi=0 * rows.rho_phi)
    assert Kernel(loss=loss).regression(nobody, 2.0, 0.3, 0.05).dual.size == 0


# Neighbours, by brute force.


def distance(one, other):
    """‖Σ αᵢk(xᵢ, ·) − Σ βⱼk(zⱼ, ·)‖ in the kernel's own space."""
    x, dual = np.concatenate([one.rows, other.rows]), np.concatenate([one.dual, -other.dual])
    return math.sqrt(max(float(dual @ one.kernel(x, x) @ dual), 0.0))


def rows_of(values):
    x, rho, target = (np.array(column) for column in zip(*values, strict=True))
    return {"x": x[:, None], "rho": rho, "rho_phi": np.sqrt(rho) * target}


row = st.tuples(
    st.sampled_from([0.0, 0.0, 1e-6, 0.5, 1.0]), st.sampled_from([0.0, 0.25, 0.9, 1.0]), st.sampled_from([-5, 0, 5.0])
)
cases = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(["huber", "ridge"]),
        "kind": st.sampled_from(["gaussian", "matern32"]),
        "bandwidth": st.sampled_from([0.1, 10.0]),
        "penalty": st.sampled_from([0.13, 0.3, 5.0]),
        "bound": st.sampled_from([0.2, 2.0]),
    }
)


def fits(table, neighbour, case, relation, n=10):
    settings = Kernel(loss=case["loss"], kind=case["kind"], bandwidth=case["bandwidth"])
    for values in (table, neighbour):
        owned = case.get("rows", 1)
        data = problem(neighbours=relation, rows_per_person=owned, **{**rows_of(values), "n": n})
        yield settings.regression(data, 0.0, case["bound"], case["penalty"])


@settings(max_examples=150)
@given(st.lists(row, min_size=10, max_size=10), row, st.integers(0, 9), cases)
def test_replacing_a_row_moves_the_function_by_at_most_the_sensitivity(table, new, position, case):
    neighbour = [*table[:position], new, *table[position + 1 :]]
    one, other = fits(table, neighbour, case, "replace-one")
    assert distance(one, other) <= one.sensitivity.value * (1 + 1e-6)


@settings(max_examples=150)
@given(st.lists(row, min_size=8, max_size=14), st.integers(0, 7), cases)
def test_removing_a_row_moves_the_function_by_at_most_the_sensitivity(table, position, case):
    """The number n = 10 is a noisy count: there may be more rows, or fewer."""
    neighbour = [*table[:position], *table[position + 1 :]]
    one, other = fits(table, neighbour, case, "add-or-remove-one")
    assert distance(one, other) <= one.sensitivity.value * (1 + 1e-6)


@settings(max_examples=80)
@given(st.lists(row, min_size=10, max_size=10), row, row, cases, st.booleans())
def test_a_person_with_two_rows_moves_the_function_by_at_most_the_sensitivity(table, one, two, case, leaves):
    """Five persons with two rows each; one of them is replaced, or leaves while the count says four."""
    relation, persons = ("add-or-remove-one", 4) if leaves else ("replace-one", 5)
    neighbour = table[2:] if leaves else [one, two, *table[2:]]
    first, second = fits(table, neighbour, {**case, "rows": 2}, relation, n=persons)
    assert distance(first, second) <= first.sensitivity.value * (1 + 1e-6)


def test_the_huber_bound_is_attained():
    table = [(0.5, 0.25, 50.0 if i % 2 else -50.0) for i in range(10)]
    case = {"loss": "huber", "kind": "gaussian", "bandwidth": 0.3, "penalty": 0.3, "bound": 0.2}
    one, other = fits(table, [(0.5, 0.25, 50.0), *table[1:]], case, "replace-one")
    assert distance(one, other) == pytest.approx(one.sensitivity.value, rel=1e-3)


# The release.


@pytest.mark.parametrize("loss", ["huber", "ridge"])
@pytest.mark.parametrize("relation", ["replace-one", "add-or-remove-one"])
def test_the_whole_budget_is_spent_and_no_more(loss, relation):
    _, accountant = oracle(problem(neighbours=relation), Kernel(loss=loss))
    assert accountant.epsilon_spent() == pytest.approx(1.0, rel=1e-6)
    assert [charge.mechanism for charge in accountant.charges].count("gaussian process path") == 1


def test_answers_are_the_function_plus_the_path(monkeypatch):
    """The same seed draws the same path: answers − r·u is the fit, here and at the public points."""
    rows, noise = problem(), {}
    drawn = NoisePath.at

    def noted(self, points):
        noise["last"] = drawn(self, points)
        return noise["last"]

    monkeypatch.setattr(NoisePath, "at", noted)
    settings = Kernel(penalty=0.05, threshold=0.05)
    asked, _ = oracle(rows, settings)
    model = asked.model
    fitted = settings.regression(rows, model.offset, 0.05 * rows.score_limit, 0.05)
    x = np.random.default_rng(9).random((20, 2))
    for points, answers in ((x, asked.effect(x)), (np.asarray(model.points), asked.effect(model.points))):
        asked.effect(points)
        g = fitted.kernel(points, fitted.rows) @ fitted.dual
        assert np.allclose(answers, model.offset + g + noise["last"], atol=1e-12)
    assert np.allclose(asked.effect(model.points), model.offset + np.asarray(model.values), atol=1e-12)


def test_the_noise_is_sensitivity_over_mu():
    rows = problem()
    asked, accountant = oracle(rows, Kernel(penalty=0.05, threshold=0.05))
    charge = next(charge for charge in accountant.charges if charge.name == "test: function")
    expected = 2 * 0.05 * rows.score_limit / (0.05 * rows.n) / charge.event.mu
    assert asked.model.noise_sd == pytest.approx(expected, rel=2e-4)
    assert charge.sensitivity.proof == "huber-minimiser"


def test_the_published_model_interpolates_the_oracle():
    asked, _ = oracle(problem(), Kernel(points=200))
    assert isinstance(asked.model, KernelModel)
    assert len(asked.model.points) == 200
    x = np.random.default_rng(9).uniform(0.1, 0.9, (50, 2))
    assert np.abs(asked.effect(x) - asked.model.value(x)).max() < 0.05 * asked.model.noise_sd + 0.01


def test_sixty_reference_points_may_be_few_distinct_ones():
    levels = np.tile(np.eye(2), (50, 1))
    asked, _ = oracle(problem(reference=levels))
    assert len(asked.model.points) == 2


def test_intervals_need_their_share():
    rows = problem()
    budget = Budget(epsilon=1.0, delta=1e-6)
    mechanisms = Mechanisms(Accountant(budget), noise_source(0))
    model = Kernel().fit(rows, mechanisms, budget.mu, "test", interval=False)
    assert model.sampling_sd == 0.0
    assert len(mechanisms.accountant.charges) == 4
    assert oracle(rows)[0].model.sampling_sd > 0


def test_the_prior_follows_the_size_of_the_function():
    model = oracle(problem(n=2000), epsilon=50.0)[0].model
    reference = problem().reference
    sizes = [prior_sd(m, reference, 4.0) for m in (model, *(scaled(model, factor) for factor in (0.01, 3, 100)))]
    assert sizes[1] == 0.2
    assert sizes[3] == 1.0
    assert sizes[1] <= sizes[0] <= sizes[2] <= sizes[3]


def scaled(model, factor):
    return KernelModel(**{**{f: getattr(model, f) for f in model.__struct_fields__},
                          "values": [factor * value for value in model.values]})  # fmt: skip


# Refusals.


@pytest.mark.parametrize(
    "bad",
    [{"kind": "rbf"}, {"bandwidth": -1.0}, {"penalty": 0.0}, {"threshold": math.nan}, {"loss": "l1"}, {"points": 0},
     {"points": 2.5}, {"points": True}, {"points": 4000}],
)  # fmt: skip
def test_bad_settings_are_refused(bad):
    with pytest.raises(InputError):
        Kernel(**bad)


def spent_after_refusal(rows, settings, match):
    mechanisms = Mechanisms(Accountant(Budget(epsilon=1.0, delta=1e-6)), noise_source(0))
    with pytest.raises(InputError, match=match):
        settings.fit(rows, mechanisms, 0.1, "test")
    return mechanisms.accountant.charges


def test_too_many_rows_are_refused_by_the_public_number_before_anything_is_spent():
    assert not spent_after_refusal(problem(n=10), Kernel(penalty=1e-9, loss="ridge"), "raise the penalty")
    many = dataclasses.replace(problem(), n=MOST_ROWS + 1)
    assert not spent_after_refusal(many, Kernel(), "second_stage='features'")


def test_the_ridge_rule_stays_within_its_proof():
    asked, _ = oracle(problem(n=12), Kernel(loss="ridge"), epsilon=50.0)
    assert asked.model.penalty * 12 >= 2 * 0.25


# The method on the paper's Dataset 1.


def dataset_problem(seed, n=700):
    """Dataset 1 with its true nuisances, and 300 points to judge by."""
    data = datasets.synthetic(1, n + 300, seed)
    rng = np.random.default_rng(seed)
    rng.uniform(size=(n + 300, 2))
    beta, gamma = rng.uniform(0, 0.3, 2), rng.uniform(0, 1, 2)
    pi = (1 + data.X @ beta) / 2
    w = data.T - pi
    residual = data.Y - data.X @ gamma - pi * true_effect(1, data.X)
    names = list(data.schema.covariates)
    x, _ = encode_covariates(data.schema, dict(zip(names, data.X.T, strict=True)))
    rows = problem(x=x[:n], rho=w[:n] ** 2, rho_phi=(w * residual)[:n], n=n, span=data.schema.outcome.range)
    return dataclasses.replace(rows, reference=reference_points(data.schema)), x[n:], data.tau[n:]


@pytest.mark.parametrize(("loss", "limit"), [("huber", 0.65), ("ridge", 1.0)])
def test_the_error_on_dataset_1_falls_with_epsilon(loss, limit):
    """700 rows; a constant effect has error 1.17. The squared loss pays for its larger sensitivity."""
    errors = {}
    for epsilon in (0.1, 1.0, 10.0):
        for seed in range(6):
            rows, x, tau = dataset_problem(seed)
            model = oracle(rows, Kernel(loss=loss), seed, epsilon)[0].model
            errors.setdefault(epsilon, []).append(np.sqrt(np.mean((model.value(x) - tau) ** 2)))
    low, middle, high = (np.mean(errors[epsilon]) for epsilon in (0.1, 1.0, 10.0))
    assert low > middle > high
    assert high < limit


def test_the_jitter_is_that_of_the_path():
    from dpcate.models import kernel as model
    from dpcate.privacy import path

    assert JITTER == path.JITTER == model.JITTER
