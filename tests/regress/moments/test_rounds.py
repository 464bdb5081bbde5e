import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from dpcate.models.basis import Basis
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.regress.moments import rules
from dpcate.regress.moments.belief import Evidence, Gram, Observation, Prior
from dpcate.regress.moments.rounds import (
    EVEN,
    LARGEST_SLOPE,
    MOST_SHORTENED,
    SHORTER,
    TOO_FAR,
    Block,
    Slope,
    State,
    Step,
    _shrunk_gram,
    _updated,
    _with_slopes,
    _within_reach,
    deepened,
    played,
    sized,
    water_filled,
)
from dpcate.regress.moments.rows import MomentRows
from dpcate.regress.sizes import Sizes


@pytest.mark.parametrize("seed", range(5))
def test_water_filling_is_the_minimum(seed):
    rng = np.random.default_rng(seed)
    variance, importance, capacity = rng.uniform(0.02, 1, 5), rng.uniform(0.1, 1, 5), rng.uniform(5, 60, 5)

    def left(w):
        return float((importance / (1 / variance + capacity * w)).sum())

    filled = water_filled(variance, importance, capacity)
    assert filled.sum() == pytest.approx(1.0)
    constraint = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(left, np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints=constraint, tol=1e-12)
    assert left(filled) <= best.fun + 1e-8


def test_water_filling_goes_where_most_is_open_however_small_the_budget():
    weight = water_filled(np.array([1.0, 4.0, 1e-14]), np.ones(3), np.full(3, 1e-40))
    np.testing.assert_allclose(weight, [0.0, 1.0, 0.0])
    np.testing.assert_allclose(water_filled(np.ones(3), np.ones(3), np.full(3, 1e-40)), np.full(3, 1 / 3))


def test_a_gram_without_noise_is_kept_and_noise_alone_is_dropped():
    gram = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.0], [0.0, 0.0, 1.4]])
    np.testing.assert_allclose(_shrunk_gram(gram, 1e-4, 1e9), gram, atol=0.02)
    noise = np.random.default_rng(0).normal(size=(20, 20)) * 0.1 / np.sqrt(2)
    noisy = np.eye(20) + np.triu(noise, 1) + np.triu(noise, 1).T
    shrunk = _shrunk_gram(noisy, 0.1, 1e9)
    assert np.abs(shrunk - np.eye(20)).mean() < 0.2 * np.abs(noisy - np.eye(20)).mean()
    assert np.linalg.eigvalsh(_shrunk_gram(-5 * np.ones((3, 3)), 0.01, 1e9)).min() >= 0.1 - 1e-12


def test_public_rules():
    assert rules.first_degree(100.0, 2) == 4
    assert rules.first_degree(100.0, 30) == 3
    assert rules.gram_terms(10.0) == 0
    assert rules.gram_terms(2000.0) > rules.gram_terms(500.0) >= rules.FEWEST_GRAM


@pytest.mark.parametrize(
    ("ratio", "square"),
    [
        (0.01, rules.STERNEST),
        (0.075, 0.5),
        (0.12, 0.8),
        (0.15, 1.0),
        (0.5, 1.0),
        (1.0, 1.0),
        (2.0, 2.0),
        (9.0, rules.GENTLEST),
    ],
)
def test_clips_are_sterner_where_noise_drowns_all_and_gentler_where_it_is_small(ratio, square):
    """`ratio` is √n·μ/2 over the root of the effective number of coefficients."""
    n, effective = 2500.0, 7.0
    mu = 2 * ratio * np.sqrt(effective / n)
    assert rules.gentleness(n, mu, effective) == pytest.approx(np.sqrt(square))


@pytest.mark.parametrize("error", [0.0, 0.1, 0.6])
def test_columns_that_are_not_centred_respond_more_strongly_by_their_error_squared(error):
    """Of a standardised column whose mean is off by a normal error b, the second moment is 1 + b²."""
    moments = [quad(lambda z, k=k: (1 + (error * z) ** 2) ** k * norm.pdf(z), -12, 12, points=[0.0])[0] for k in (1, 2)]
    slope = Slope.uncentred(error)
    assert slope.value == pytest.approx(Slope().value * moments[0])
    assert slope.variance == pytest.approx(Slope().variance + moments[1] - moments[0] ** 2)


def test_columns_grow_once_they_surely_matter_if_they_fill_their_range():
    means, sds = np.array([0.5, 0.5, 0.5, 0.1]), np.array([0.29, 0.29, 0.1, 0.07])
    basis = Basis.additive(means, sds, 3, rules.HIGHEST_DEGREE)
    strong = np.array([bool(term) and term[0][0] != 1 for term in basis.terms])  # all but the second column matter
    seen = Observation(step=strong.astype(float), start=np.zeros(len(strong)), precision=np.full(len(strong), 1e4))
    prior = Prior(0.0, 1.0, np.array([0.5, 1.0]), np.array([1.0, 2.0]), 4)
    block = Block(Evidence(prior, (seen,)), 1.0, np.ones(2))
    grown = deepened(State(1e4, basis, 0.01, (block,), Sizes.prior(1.0, 0.1))).basis
    highest = [max(degree for term in grown.terms for j, degree in term if j == column) for column in range(4)]
    assert highest == [rules.HIGHEST_DEGREE, 3, 3, 3]
    assert grown.terms[: len(basis.terms)] == basis.terms


def test_without_a_second_moment_to_follow_columns_must_be_nearly_uniform_to_grow():
    basis = Basis.additive(np.full(2, 0.5), np.array([0.29, 0.24]), 3, rules.HIGHEST_DEGREE)
    seen = Observation(np.ones(len(basis.terms)), np.zeros(len(basis.terms)), np.full(len(basis.terms), 1e4))
    block = Block(Evidence(Prior(0.0, 1.0, np.array([1.0]), np.array([1.0]), 2), (seen,)), 1.0, np.ones(2))
    state = State(1e4, basis, 0.01, (block,), Sizes.prior(1.0, 0.1))
    for grown, columns in ((deepened(state), {0}), (deepened(state, EVEN), {0, 1})):
        assert {j for term in grown.basis.terms for j, degree in term if degree == rules.HIGHEST_DEGREE} == columns


def test_even_columns_that_surely_matter_are_multiplied_the_largest_first_and_once():
    width = rules.PAIRED_COLUMNS + 3
    means, sds = np.full(width, 0.5), np.full(width, 0.29)
    sds[-1] = 0.1  # the last column matters, but does not fill its range; the one before does not matter
    basis = Basis.additive(means, sds, 2, rules.HIGHEST_DEGREE)
    size = np.zeros(len(basis.terms))
    for row, term in enumerate(basis.terms):
        if term and term[0][0] != width - 2:
            size[row] = 2.0 - 0.1 * term[0][0]
    seen = Observation(step=size, start=np.zeros(len(size)), precision=np.full(len(size), 1e4))
    prior = Prior(0.0, 1.0, np.array([0.5, 1.0]), np.array([1.0, 2.0]), width)
    block = Block(Evidence(prior, (seen,)), 1.0, np.ones(2))
    state = deepened(State(1e4, basis, 0.01, (block,), Sizes.prior(1.0, 0.1)))
    products = {tuple(column for column, _ in term) for term in state.basis.terms if len(term) == 2}
    assert products == set(itertools.combinations(range(rules.PAIRED_COLUMNS), 2))
    assert deepened(state) is state


COPIES = 12
TRUE_LINE = 1.5


def regression(x, target, group, basis, *, slopes=None, pulls=None, limit=20.0, epsilon=1.0, seed=0):
    """Rows, all of them present, of a plain regression, or with the slopes and pulls of several blocks."""
    n, ones = len(x), np.ones((1, len(x)))
    rows = MomentRows(
        x=x, target=target, slopes=ones if slopes is None else slopes, pulls=ones if pulls is None else pulls,
        group=group, present=np.ones(n, dtype=bool), n=n, limit=limit,
        neighbours="replace-one", rows_per_person=1, part=None,
        mechanisms=Mechanisms(Accountant(Budget(epsilon=epsilon, delta=1e-5)), noise_source(seed)),
    )  # fmt: skip
    rows.describe(basis)
    return rows


def copied_columns(n=2000, seed=0):
    """A target that is a line of one column, which the table holds twelve times over, and a basis of lines."""
    rng = np.random.default_rng(seed)
    column = rng.random(n)
    x = np.repeat(column[:, None], COPIES, axis=1)
    basis = Basis.additive(np.full(COPIES, 0.5), np.full(COPIES, np.sqrt(1 / 12)), 1, 1)
    target = TRUE_LINE * np.sqrt(12) * (column - 0.5) + 0.3 * rng.normal(size=n)
    rows = regression(x, target, rng.integers(0, 2, n), basis, limit=40.0, epsilon=100.0, seed=seed)
    prior = Prior(0.0, 1.0, np.array([0.5, 1.0]), np.array([1.0, 3.0]), COPIES)
    block = Block(Evidence(prior), 1.0, np.ones(2))
    return rows, State(float(n), basis, 0.01, (block,), Sizes.prior(1.5, 0.5))


def line_of(state, value):
    """The state after a round that saw this line in every copy."""
    seen = np.r_[0.0, np.full(COPIES, value)]
    observation = Observation(step=seen, start=np.zeros(COPIES + 1), precision=np.full(COPIES + 1, 1e6))
    return state.with_evidence([state.blocks[0].evidence.and_also(observation)])


def test_a_step_that_made_residuals_larger_is_taken_back_and_the_next_is_shorter():
    rows, start = copied_columns()
    anchored = sized(start, rows, 1.0, "before")
    assert anchored.anchor.sizes is anchored.sizes
    back = sized(line_of(anchored, TRUE_LINE), rows, 1.0, "after")  # twelve times too far, together
    assert back.blocks[0].evidence == anchored.blocks[0].evidence
    np.testing.assert_array_equal(back.mean, anchored.mean)
    assert back.sizes is anchored.sizes
    assert back.blocks[0].slope.value == pytest.approx(SHORTER * Slope().value)
    assert back.blocks[0].known_slope == Slope()


def test_a_basis_that_grows_does_not_forget_where_residuals_were_smallest():
    """A step that went too far in the round in which columns grow, or in the one before, is taken back all the same."""
    rng = np.random.default_rng(0)
    x, basis = rng.random((3000, 2)), Basis.additive(np.full(2, 0.5), np.full(2, 0.29), 2, rules.HIGHEST_DEGREE)
    target = basis.at(x)[:, 1] + 0.2 * rng.normal(size=3000)
    rows = regression(x, target, rng.integers(0, 2, 3000), basis, epsilon=100.0)
    terms = len(basis.terms)
    surely = Observation(np.r_[0.0, 1.0, np.zeros(terms - 2)], np.zeros(terms), np.full(terms, 1e6))
    block = Block(Evidence(Prior(0.0, 1.0, np.array([1.0]), np.array([1.0]), 2), (surely,)), 1.0, np.ones(2))
    good = sized(State(3000.0, basis, 0.01, (block,), Sizes.prior(0.2, 0.2)), rows, 1.0, "before")
    far = Observation(np.r_[0.0, 5.0, np.zeros(terms - 2)], np.zeros(terms), np.full(terms, 1e8))
    grown = deepened(good.with_evidence([good.blocks[0].evidence.and_also(far)]))
    assert len(grown.basis.terms) > terms
    rows.describe(grown.basis)
    back = sized(grown, rows, 1.0, "after")
    assert back.blocks[0].evidence == good.blocks[0].evidence
    assert back.blocks[0].slope.value == pytest.approx(SHORTER * Slope().value)
    assert back.mean.shape == (1, len(grown.basis.terms))


def test_a_step_that_made_residuals_smaller_is_where_to_go_back_to():
    rows, start = copied_columns()
    before = sized(start, rows, 1.0, "before")
    better = line_of(before, TRUE_LINE / COPIES)
    forth = sized(better, rows, 1.0, "after")
    assert forth.blocks[0].evidence == better.blocks[0].evidence
    assert forth.anchor.evidence == (better.blocks[0].evidence,)
    assert forth.sizes.log_spread[0] < before.sizes.log_spread[0] - 0.3


def test_counts_that_cannot_tell_take_nothing_back():
    rows, start = copied_columns()
    far = line_of(sized(start, rows, 1e-4, "before"), TRUE_LINE)
    kept = sized(far, rows, 1e-4, "after")
    assert kept.blocks[0].evidence == far.blocks[0].evidence


def test_rounds_end_near_a_line_that_twelve_columns_hold():
    rows, state = copied_columns()
    for number in range(8):
        state = played(state, rows, 1.0, f"round {number}", rules.LATE)
    assert state.mean[0, 1:].sum() == pytest.approx(TRUE_LINE, abs=0.15)


@pytest.mark.parametrize(
    ("kind", "sterner"), [({}, True), ({"two_valued": True}, False), ({"constants_only": True}, False)]
)
def test_what_takes_two_values_and_the_first_look_at_constants_are_not_clipped_more_sternly(kind, sterner, monkeypatch):
    """Noise is in proportion to where scores are clipped; counts see the same noise both times."""

    def noise():
        rows, state = copied_columns()
        return played(state, rows, 0.005, "round", rules.EARLY, **kind).last.sd

    ours = noise()
    monkeypatch.setattr(rules, "STERNEST", 1.0)
    assert (ours < 0.8 * noise()) == sterner
    assert sterner or ours == noise()


def test_slopes_are_learned_apart_within_and_outside_of_the_second_moment():
    steep, gram = 5.0, Gram(np.array([1, 2]), np.array([[1.0, 0.9], [0.9, 1.0]]))
    prior = Prior(0.0, 1.0, np.array([1.0]), np.array([1.0]), 4)
    block = Block(Evidence(prior, gram=gram), 0.5, np.ones(2))
    moved, ones = np.array([[0.0, 0.6, 0.4, 0.3, 0.2]]), np.full((1, 5), 0.7)
    fell = 0.5 * np.array([[0.0, 0.6 + 0.36, 0.54 + 0.4, steep * 0.3, steep * 0.2]])
    before, after = Step(0.7 * fell, 0 * moved, ones, 1e-6), Step(0 * fell, moved, ones, 1e-6)
    learned = _with_slopes(block, before, after, 0)
    assert learned.known_slope.value == pytest.approx(1.0, abs=1e-6)
    assert learned.slope.value == pytest.approx(steep, abs=1e-6)


def test_how_far_the_constant_moves_does_not_depend_on_what_other_terms_do():
    block = Block(Evidence(Prior(0.0, 1.0, np.array([1.0]), np.array([1.0]), 2)), 1.0, np.ones(2))
    np.testing.assert_array_equal(block.known(3), [True, False, False])
    moved, ones = np.array([[0.5, 0.3, 0.2]]), np.ones((1, 3))
    before, after = Step(np.array([[0.45, 2.1, 1.4]]), 0 * moved, ones, 1e-6), Step(0 * moved, moved, ones, 1e-6)
    learned = _with_slopes(block, before, after, 0)
    assert learned.known_slope.value == pytest.approx(0.9, abs=1e-6)
    assert learned.slope.value == pytest.approx(7.0, abs=1e-6)


def two_functions(scale):
    """The state before a round, of two functions of two columns, whose residuals have this scale."""
    prior = Prior(0.0, 1.0, np.array([10.0]), np.array([1.0]), 2)
    basis = Basis.additive(np.full(2, 0.5), np.full(2, 0.29), 1, 1)
    block = Block(Evidence(prior), 1.0, np.ones(2))
    return State(1000.0, basis, 0.0, (block, block), Sizes.prior(scale, 0.1))


def energy_of_moves(state):
    return (state.mean[:, 1:] ** 2).sum(axis=1)


@pytest.mark.parametrize(
    ("claimed", "shortened"), [(1.0, 0), (4.0, 0), (6.0, 1), (12.0, 2), (30.0, 3), (500.0, MOST_SHORTENED)]
)
def test_a_step_that_claims_more_than_residuals_hold_is_shortened_until_it_does_not(claimed, shortened):
    """Residuals of scale 2 hold an energy of 4. The second function of the two moves little, and stays as it was."""
    state = two_functions(scale=2.0)
    score = np.array([[0.0, 0.0, Slope().value * claimed], [0.0, 0.3, 0.0]])
    step = Step(score, np.zeros((2, 3)), np.ones((2, 3)), 1e-3)
    plain, held = (update(state, step, np.ones((2, 3))) for update in (_updated, _within_reach))
    first, second = held.blocks
    assert first.slope.value == pytest.approx(min(Slope().value * SHORTER**shortened, LARGEST_SLOPE))
    assert first.known_slope.value == first.slope.value
    assert (second.slope, second.known_slope) == (Slope(), Slope())
    assert len(first.evidence.observations) == 1
    assert held.mean[0, 2] == pytest.approx(plain.mean[0, 2] * Slope().value / first.slope.value, rel=0.02)
    np.testing.assert_allclose(held.mean[1], plain.mean[1], rtol=0.02, atol=1e-3)
    assert held.last is step
    if shortened < MOST_SHORTENED:
        assert energy_of_moves(held)[0] <= TOO_FAR * 4.0


def test_slopes_stay_within_their_limits():
    assert Slope().seen(100.0, 1e-9).value == LARGEST_SLOPE
    assert Slope(LARGEST_SLOPE).steeper().value == LARGEST_SLOPE


def test_with_more_rounds_left_a_round_looks_at_more():
    basis = Basis.additive(np.full(20, 0.5), np.full(20, 0.29), 1, 1)
    rng = np.random.default_rng(0)
    n, looked = 500, []
    for left in (1, 4):
        x, target, group = rng.random((n, 20)), rng.normal(size=n), rng.integers(0, 2, n)
        rows = regression(x, target, group, basis)
        seen = Observation(np.r_[0.0, np.linspace(0, 1.5, 20)], np.zeros(21), np.full(21, 4.0))
        block = Block(Evidence(Prior(0.0, 1.0, np.array([1.0]), np.array([3.0]), 20), (seen,)), 1.0, np.ones(2))
        state = played(State(n, basis, 0.1, (block,), Sizes.prior(1.0, 0.3)), rows, 0.1, "round", rules.LATE, left=left)
        looked.append((state.last.direction > 0).sum())
    assert looked[0] < looked[1]


def two_blocks(evidence=(), n=500, width=12):
    """An outcome and an effect of the lines of twelve columns, and rows of neither."""
    rng = np.random.default_rng(1)
    basis = Basis.additive(np.full(width, 0.5), np.full(width, 0.29), 1, 1)
    sign, ones = rng.choice([-0.5, 0.5], n), np.ones(n)
    slopes, pulls = np.stack([ones, sign]), np.stack([ones, 2 * sign])
    x, target, group = rng.random((n, width)), rng.normal(size=n), (sign > 0).astype(int)
    rows = regression(x, target, group, basis, slopes=slopes, pulls=pulls)
    prior = Prior(0.0, 1.0, np.array([1.0]), np.array([3.0]), width)
    outcome = Block(Evidence(prior, evidence), 1.0, np.ones(2))
    effect = Block(Evidence(prior), 0.5, np.ones(2))
    return rows, State(n, basis, 0.1, (outcome, effect), Sizes.prior(1.0, 0.3))


def test_the_effect_is_looked_for_where_the_outcome_was_found():
    found = Observation(np.r_[0.0, 2.0, np.zeros(11)], np.zeros(13), np.full(13, 400.0))
    rows, state = two_blocks((found,))
    matters = state.beliefs[1].matters
    assert matters[(0,)] > 4 * matters[(1,)]
    direction = played(state, rows, 0.1, "round", rules.EARLY).last.direction
    assert direction[1, 1] ** 2 > 2 * (direction[1, 2:] ** 2).max()


def test_an_important_outcome_takes_from_the_lines_of_an_effect_but_not_from_its_constant():
    rows, state = two_blocks()
    plain, important = (
        played(state, rows, 0.1, "round", rules.EARLY, importance=cost).last.direction for cost in (1.0, 6.0)
    )
    assert (important[1, 1:] ** 2).sum() < 0.5 * (plain[1, 1:] ** 2).sum()
    assert important[1, 0] > 0.8 * plain[1, 0] > 0.0
