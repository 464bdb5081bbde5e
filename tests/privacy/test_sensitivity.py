"""Guarantee 2: no pair of neighbours moves a noise-free statistic further than its declared sensitivity."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import dpcate.privacy
from dpcate.errors import InputError
from dpcate.privacy import sensitivity as s
from dpcate.regress.huber import huber_minimiser

PROOFS = Path(dpcate.privacy.__file__).parent / "proofs"
SWAPS = {"replace-one": 2, "add-or-remove-one": 1}

relations = st.sampled_from(list(SWAPS))
seeds = st.integers(0, 2**32 - 1)
corners = st.sampled_from([-1.0, 0.0, 1.0])


def hostile_rows(rng, rows, width):
    """Rows of the ball's boundary, of its corners, of zero, and in between."""
    v = rng.normal(size=(rows, width)) * rng.choice([1e-9, 1.0, 1e9], size=(rows, 1))
    v[rng.random(rows) < 0.3] = rng.choice([-1e9, 0.0, 1e9], size=width)
    return v


def clipped(v, bound):
    return v * np.minimum(1.0, bound / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300))


def neighbours_of(rng, relation, n, rows_per_person):
    """Two boolean masks over n + 2k rows: the common rows, with one person's k rows, with another's (or none)."""
    k = rows_per_person
    common = np.r_[np.ones(n, bool), np.zeros(2 * k, bool)]
    one, other = common.copy(), common.copy()
    one[n : n + k] = True
    if relation == "replace-one":
        other[n + k : n + k + rng.integers(0, k + 1)] = True
    return one, other


@given(seeds, relations, st.integers(1, 3), st.sampled_from([0.1, 1.0, 7.0]))
def test_clipped_sum_second_moment_box_and_histogram(seed, relation, k, bound):
    rng = np.random.default_rng(seed)
    v = clipped(hostile_rows(rng, 6 + 2 * k, 3), bound)
    one, other = neighbours_of(rng, relation, 6, k)

    shift = np.linalg.norm(v[one].sum(0) - v[other].sum(0))
    assert shift <= s.clipped_sum(norm_bound=bound, neighbours=relation, rows=k).value * (1 + 1e-9)

    moment = np.linalg.norm(v[one].T @ v[one] - v[other].T @ v[other])
    assert moment <= s.clipped_second_moment(norm_bound=bound, neighbours=relation, rows=k).value * (1 + 1e-9)

    box = np.clip(np.abs(v), 0, [bound, bound / 2, bound / 3])
    widths = (bound, bound / 2, bound / 3)
    assert np.linalg.norm(box[one].sum(0) - box[other].sum(0)) <= s.box_sum(widths=widths, rows=k).value * (1 + 1e-9)

    bins = rng.integers(0, 4, len(v))
    counts = [np.bincount(bins[mask], minlength=4) for mask in (one, other)]
    assert np.linalg.norm(counts[0] - counts[1]) <= s.histogram(neighbours=relation, rows=k).value * (1 + 1e-9)


def test_sum_bounds_are_attained():
    e = np.eye(3)
    assert np.linalg.norm(2.0 * e[0] - -2.0 * e[0]) == s.clipped_sum(norm_bound=2.0, neighbours="replace-one").value
    moments = np.linalg.norm(4 * np.outer(e[0], e[0]) - 4 * np.outer(e[1], e[1]))
    assert moments == pytest.approx(s.clipped_second_moment(norm_bound=2.0, neighbours="replace-one").value)
    assert np.linalg.norm(e[0] - e[1]) == pytest.approx(s.histogram(neighbours="replace-one").value)


@settings(max_examples=60, deadline=None)
@given(
    seeds,
    relations,
    st.integers(1, 2),
    st.sampled_from([0.003, 0.05, 1.0]),
    st.sampled_from([0.05, 1.0, 20.0]),
)
def test_huber_minimiser_never_moves_further(seed, relation, k, penalty, bound):
    rng = np.random.default_rng(seed)
    n = 8
    phi = clipped(hostile_rows(rng, n + k, 3), 1.0)
    rho = rng.choice([0.0, 0.0025, 0.25, 0.9025], size=len(phi))
    psi = rng.choice([-50.0, -1.0, 0.0, 1.0, 50.0], size=len(phi)) * rng.random(len(phi))
    tolerance = 1e-9

    def solve(mask):
        return huber_minimiser(
            phi[mask], rho[mask], psi[mask], n=n, score_bound=bound, penalty=penalty, tolerance=tolerance
        )

    one, other = neighbours_of(rng, relation, n - k, k)
    declared = s.huber_minimiser(
        score_bound=bound, penalty=penalty, n=n, neighbours=relation, gradient_norm=tolerance, rows=k
    )
    assert np.linalg.norm(solve(one) - solve(other)) <= declared.value * (1 + 1e-9)


@pytest.mark.parametrize("relation", SWAPS)
def test_huber_bound_is_attained_within_two_percent(relation):
    """All rows at one point, scores beyond the clip, half on each side; one row turns over (or leaves)."""
    n, bound, penalty = 101, 0.3, 0.02
    phi, rho = np.ones((n, 1)), np.full(n, 0.25)
    psi = np.where(np.arange(n) % 2 == 0, 100.0, -100.0)
    turned = np.r_[-100.0, psi[1:]]
    keep = slice(None) if relation == "replace-one" else slice(1, None)

    def solve(psi, keep=slice(None)):
        return huber_minimiser(
            phi[keep], rho[keep], psi[keep], n=n, score_bound=bound, penalty=penalty, tolerance=1e-12
        )

    shift = np.linalg.norm(solve(psi) - solve(turned, keep))
    declared = s.huber_minimiser(score_bound=bound, penalty=penalty, n=n, neighbours=relation).value
    assert 0.98 * declared <= shift <= declared * (1 + 1e-9)


def ridge(v, t, n, penalty):
    return np.linalg.solve(v.T @ v / n + penalty * np.eye(v.shape[1]), v.T @ t / n)


@settings(max_examples=200)
@given(seeds, relations, st.sampled_from([0.05, 0.2, 1.0]))
def test_ridge_minimiser_never_moves_further(seed, relation, penalty):
    rng = np.random.default_rng(seed)
    n, design, target = 24, 0.95, 2.0
    v = clipped(hostile_rows(rng, n + 2, 2), design)
    t = target * np.sign(rng.normal(size=n + 2)) * rng.choice([1.0, 0.3], size=n + 2)
    one, other = neighbours_of(rng, relation, n - 1, 1)
    one, other = one[: n + 1], other[: n + 1]
    shift = np.linalg.norm(
        ridge(v[: n + 1][one], t[: n + 1][one], n, penalty) - ridge(v[: n + 1][other], t[: n + 1][other], n, penalty)
    )
    declared = s.ridge_minimiser(design_bound=design, target_bound=target, penalty=penalty, n=n, neighbours=relation)
    assert shift <= declared.value * (1 + 1e-9)


@pytest.mark.parametrize("penalty", [1.0, 0.1, 0.01])
def test_ridge_bound_is_attained_and_the_domain_bound_is_not_one(penalty):
    """Rows of size c along one direction with targets −R, then one row of full size with target R."""
    n, design, target = 400, 1.0, 1.0

    def shift(c):
        v, t = np.full((n - 1, 1), c), np.full(n - 1, -target)
        return abs(ridge(np.vstack([v, [[design]]]), np.r_[t, target], n, penalty) - ridge(v, t, n, penalty))[0]

    attained = -minimize_scalar(lambda c: -shift(c), bounds=(0, 1), method="bounded").fun
    declared = s.ridge_minimiser(
        design_bound=design, target_bound=target, penalty=penalty, n=n, neighbours="add-or-remove-one"
    ).value
    assert 0.98 * declared <= attained <= declared * (1 + 1e-9)
    if penalty <= 0.1:
        assert attained > design * target / (penalty * n)


def test_ridge_grid_finds_the_maximum():
    for design, penalty, n in ((0.95, 0.3, 50), (1.0, 1e-3, 5000), (0.2, 5.0, 10)):
        leverage = design**2 / penalty

        def negative(x, leverage=leverage, n=n):
            return -x * (1 + np.sqrt(leverage * x * (1 - x))) / (n + x * leverage)

        best = minimize_scalar(negative, bounds=(1 / (1 + leverage), 1), method="bounded", options={"xatol": 1e-12})
        exact = design / penalty * max(-best.fun, -negative(1.0))
        declared = s.ridge_minimiser(
            design_bound=design, target_bound=1.0, penalty=penalty, n=n, neighbours="add-or-remove-one"
        ).value
        assert exact <= declared <= exact * (1 + 1e-5)


def test_ridge_outside_its_conditions_is_refused():
    with pytest.raises(InputError, match="penalty \\* n"):
        s.ridge_minimiser(design_bound=1.0, target_bound=1.0, penalty=0.01, n=50, neighbours="replace-one")


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_meaningless_parameters_are_refused(value):
    with pytest.raises(InputError, match="penalty must be a positive number"):
        s.huber_minimiser(score_bound=1.0, penalty=value, n=10, neighbours="replace-one")


def test_every_bound_names_a_proof_page_that_exists():
    bounds = [
        s.clipped_sum(norm_bound=1.0, neighbours="replace-one"),
        s.box_sum(widths=(1.0,)),
        s.histogram(neighbours="replace-one"),
        s.clipped_second_moment(norm_bound=1.0, neighbours="replace-one"),
        s.huber_minimiser(score_bound=1.0, penalty=1.0, n=1, neighbours="replace-one"),
        s.ridge_minimiser(design_bound=1.0, target_bound=1.0, penalty=1.0, n=2, neighbours="replace-one"),
    ]
    public = [
        name for name, item in vars(s).items() if callable(item) and getattr(item, "__module__", "") == s.__name__
    ]
    assert len(bounds) == len([name for name in public if not name.startswith("_") and name != "Sensitivity"])
    for bound in bounds:
        page = (PROOFS / f"{bound.proof}.md").read_text()
        assert "**Claim.**" in page
        assert "**Proof.**" in page
