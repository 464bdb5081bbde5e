import numpy as np
import pytest

from dpcate.models.basis import Basis
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.regress.moments import rows as rows_module
from dpcate.regress.moments.rows import MomentRows

BASIS = Basis.additive(np.array([0.5, 0.4]), np.array([0.29, 0.2]), 3, 3).grown([0, 1], [])


class Quiet(Mechanisms):
    """Keeps each statistic as it was before noise."""

    def _release(self, name, mechanism, vector, sensitivity, mu, part):
        self.seen = vector.copy()
        return super()._release(name, mechanism, vector, sensitivity, mu, part)


def made(n=200, seed=0, **changes):
    rng = np.random.default_rng(seed)
    present = rng.random(n) < 0.9
    fields = {
        "x": rng.random((n, 2)), "target": rng.normal(size=n) * present,
        "slopes": rng.normal(size=(2, n)) * present,
        "pulls": rng.normal(size=(2, n)) * present, "group": rng.integers(0, 2, n), "present": present, "n": n,
        "limit": 8.0, "neighbours": "replace-one", "rows_per_person": 1, "part": None,
        "mechanisms": Quiet(Accountant(Budget(epsilon=5.0, delta=1e-5)), noise_source(0)),
    }  # fmt: skip
    rows = MomentRows(**{**fields, **changes})
    rows.describe(BASIS)
    return rows


COEFFICIENTS = np.random.default_rng(1).normal(size=(2, len(BASIS.terms)))
DIRECTION = np.abs(np.random.default_rng(2).normal(size=(2, len(BASIS.terms))))
VALUE_EDGES = np.linspace(-1.5, 2.0, 7)
CLIPS, BOUND, EDGES = np.array([0.7, 1.5]), 2.0, np.array([0.1, 0.5, 1.0, 2.0, 3.0])


def one_score(rows, i):
    """The definition, row by row."""
    features = BASIS.at(rows.x[i : i + 1])[0]
    residual = rows.target[i] - sum(rows.slopes[b, i] * (features @ COEFFICIENTS[b]) for b in range(2))
    residual = np.clip(residual, -CLIPS[rows.group[i]], CLIPS[rows.group[i]])
    score = np.concatenate([residual * rows.pulls[b, i] * DIRECTION[b] * features for b in range(2)])
    return score * min(1.0, BOUND / max(np.linalg.norm(score), 1e-300)), residual


@pytest.mark.parametrize("batch", [7, 10_000])
def test_scores_are_the_mean_of_clipped_scores_whatever_the_batches(monkeypatch, batch):
    monkeypatch.setattr(rows_module, "BATCH", batch)
    rows = made()
    noisy = rows.scores(COEFFICIENTS, CLIPS, DIRECTION, BOUND, 0.5, "scores")
    expected = np.mean([one_score(rows, i)[0] for i in range(200)], axis=0)
    np.testing.assert_allclose(rows.mechanisms.seen, expected, atol=1e-12)
    assert noisy.sd == pytest.approx(2 * BOUND / 200 / 0.5, rel=1e-6)
    assert any(np.linalg.norm(one_score(rows, i)[0]) > BOUND - 1e-9 for i in range(200))  # the bound does bind


def test_nothing_is_released_of_coefficients_that_are_not_looked_at():
    rows, direction = made(), np.where(np.arange(DIRECTION.shape[1]) % 2, DIRECTION, 0.0)
    noisy = rows.scores(COEFFICIENTS, CLIPS, direction, BOUND, 0.5, "scores")
    assert rows.mechanisms.seen.size == np.count_nonzero(direction)
    assert (noisy.value[direction == 0] == 0).all()
    assert (noisy.value[direction > 0] != 0).all()


@pytest.mark.parametrize("batch", [7, 10_000])
def test_sizes_count_present_rows_by_group_and_residual(monkeypatch, batch):
    monkeypatch.setattr(rows_module, "BATCH", batch)
    rows = made()
    rows.sizes(COEFFICIENTS, EDGES, 0.5, "sizes")
    counts = np.zeros((2, len(EDGES)))
    for i in np.flatnonzero(rows.present):
        features = BASIS.at(rows.x[i : i + 1])[0]
        residual = abs(rows.target[i] - sum(rows.slopes[b, i] * (features @ COEFFICIENTS[b]) for b in range(2)))
        counts[rows.group[i], min(int((residual > EDGES).sum()), len(EDGES) - 1)] += 1
    np.testing.assert_allclose(rows.mechanisms.seen, counts.ravel() / 200)


def test_values_count_present_rows_by_target():
    rows = made()
    rows.values(VALUE_EDGES, 0.5, "values")
    expected = np.histogram(rows.target[rows.present], np.r_[-np.inf, VALUE_EDGES, np.inf])[0]
    np.testing.assert_allclose(rows.mechanisms.seen, expected / 200)


def test_second_moments_are_those_of_present_rows():
    rows = made()
    chosen = np.array([1, 3, 4])
    rows.second_moment(chosen, 100.0, 0.5, "gram")
    features = BASIS.at(rows.x)[:, chosen] * rows.present[:, None]
    upper = np.triu_indices(3)
    scale = np.where(upper[0] == upper[1], 1.0, np.sqrt(2))
    np.testing.assert_allclose(rows.mechanisms.seen, (features.T @ features / 200)[upper] * scale)


@pytest.mark.parametrize("seed", range(30))
def test_one_replaced_row_moves_no_release_beyond_its_sensitivity(seed):
    """Corners of the box, huge targets and pulls: nothing in a row can break a bound."""
    rng = np.random.default_rng(seed)
    first = made(n=12, seed=seed)
    second = made(n=12, seed=seed)
    place = rng.integers(12)
    second.x[place] = rng.choice([0.0, 1.0, 0.37], 2)
    second.target[place] = rng.choice([-1e6, 1e6, 0.0, 3.9])
    second.slopes[:, place], second.pulls[:, place] = rng.choice([-50.0, 0.0, 1.0], 2), rng.choice([-50.0, 0.0, 1.0], 2)
    second.group[place], second.present[place] = rng.integers(0, 2), bool(rng.integers(0, 2))
    second._features = None
    second.describe(BASIS)
    calls = [
        (lambda rows: rows.scores(COEFFICIENTS, CLIPS, DIRECTION, BOUND, 0.4, "scores")),
        (lambda rows: rows.sizes(COEFFICIENTS, EDGES, 0.4, "sizes")),
        (lambda rows: rows.values(VALUE_EDGES, 0.4, "values")),
        (lambda rows: rows.second_moment(np.arange(1, 6), 1.5, 0.4, "gram")),
    ]
    for call in calls:
        call(first)
        call(second)
        shift = np.linalg.norm(first.mechanisms.seen - second.mechanisms.seen)
        assert shift <= first.mechanisms.accountant.charges[-1].sensitivity.value * (1 + 1e-9)


def test_rows_stay_sealed():
    assert repr(made()) == "<MomentRows: sealed>"
