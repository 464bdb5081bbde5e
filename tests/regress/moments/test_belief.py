import dataclasses
import itertools

import numpy as np
import pytest
from scipy.stats import norm

from dpcate.regress.moments.belief import LAWS, UNRELATED, Evidence, Gram, Observation, Prior, fallen, falling

TERMS = ((), ((0, 1),), ((0, 2),), ((1, 1),))
PRIOR = Prior(centre=0.5, variance=0.3, sizes=np.array([0.4, 1.0]), columns=np.array([0.5, 0.8]), width=2)
GROUPS = {(0,): [1, 2], (1,): [3]}
SHAPES = np.array([[1.0, 1.0, 2.0**-2, 1.0], [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.12, 1.0]])  # of jumps, waves, curves


def enumerated(observed, covariance, design, favour=(0.0, 0.0)):
    """The posterior by brute force: every size, number of columns, subset and law of each; normal algebra within."""
    weights, means, seconds, included = [], [], [], []
    for size, columns in itertools.product(PRIOR.sizes, PRIOR.columns):
        odds = min(0.5, columns / PRIOR.width) / (1 - min(0.5, columns / PRIOR.width)) * np.exp(favour)
        likely = odds / (1 + odds)
        for laws in itertools.product([None, 0, 1, 2], repeat=2):
            slab = np.array([PRIOR.variance, *np.zeros(3)])
            for law, terms in zip(laws, GROUPS.values(), strict=True):
                slab[terms] = 0.0 if law is None else size**2 * SHAPES[law][terms]
            centre = np.array([PRIOR.centre, 0, 0, 0])
            total = covariance + design @ np.diag(slab) @ design.T
            miss = observed - design @ centre
            log = -0.5 * miss @ np.linalg.solve(total, miss) - 0.5 * np.linalg.slogdet(total)[1]
            gain = np.diag(slab) @ design.T @ np.linalg.inv(total)
            mean, left = centre + gain @ miss, np.diag(slab) - gain @ design @ np.diag(slab)
            chances = [1 - p if law is None else p * LAWS[law] for p, law in zip(likely, laws, strict=True)]
            weights.append(log + np.log(chances).sum())
            means.append(mean)
            seconds.append(np.diag(left) + mean**2)
            included.append([law is not None for law in laws])
    weights = np.exp(np.array(weights) - max(weights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    return mean, weights @ np.array(seconds) - mean**2, weights @ np.array(included)


@pytest.mark.parametrize("favour", [None, (0.0, 0.0), (0.7, -2.0), (-1.5, 0.4)])
@pytest.mark.parametrize("seed", range(20))
def test_the_posterior_is_that_of_brute_force(seed, favour):
    rng = np.random.default_rng(seed)
    observed, noise = rng.normal(size=4), rng.uniform(0.05, 0.5, 4)
    seen = (Observation(step=observed, start=np.zeros(4), precision=1 / noise),)
    belief = Evidence(PRIOR, seen, favour=None if favour is None else np.array(favour)).belief(TERMS, 0.02)
    mean, variance, included = enumerated(observed, np.diag(noise + 0.02), np.eye(4), favour or (0.0, 0.0))
    np.testing.assert_allclose(belief.mean, mean, atol=1e-9)
    np.testing.assert_allclose(belief.variance, variance, atol=1e-9)
    np.testing.assert_allclose([belief.matters[(0,)], belief.matters[(1,)]], included, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_how_large_an_average_is_is_averaged_over(seed):
    """Against integration: a mixture of normals around the centre, seen with noise that looks alone do not end."""
    rng = np.random.default_rng(seed)
    sizes, seen = np.array([0.1, 0.5, 2.0]), rng.normal() * 2
    noise, unresolved = rng.uniform(0.05, 2), rng.uniform(0, 2)
    prior = dataclasses.replace(PRIOR, variance=sizes**2)
    looks = tuple(Observation(np.r_[seen, 0, 0, 0], np.zeros(4), np.r_[0.5 / noise, 1, 1, 1]) for _ in range(2))
    belief = Evidence(prior, looks, unresolved=unresolved).belief(TERMS, 0.02)
    grid = np.linspace(-12, 13, 200_001)
    density = norm.pdf(grid[:, None], PRIOR.centre, sizes).sum(axis=1)
    density *= norm.pdf(seen, grid, np.sqrt(noise + 0.02 + unresolved))
    mean = (grid * density).sum() / density.sum()
    assert belief.mean[0] == pytest.approx(mean, abs=1e-6)
    assert belief.variance[0] == pytest.approx(((grid - mean) ** 2 * density).sum() / density.sum(), abs=1e-6)


def test_a_constant_gets_stale_as_terms_move():
    """Where columns are not centred, a look at other coefficients saw another constant: the later look counts."""
    early = Observation(np.array([2.0, 3.0, 0.0, 0.0]), np.zeros(4), np.full(4, 100.0))
    late = Observation(np.array([-3.0, 0.0, 0.0, 0.0]), np.array([2.0, 3.0, 0.0, 0.0]), np.full(4, 100.0))
    prior = dataclasses.replace(PRIOR, variance=100.0)
    centred, uncentred = (Evidence(prior, (early, late)).belief(TERMS, 0.0, error) for error in (0.0, 1.0))
    assert centred.mean[0] == pytest.approx(0.5, abs=0.01)
    assert uncentred.mean[0] == pytest.approx(-1.0, abs=0.05)
    assert uncentred.variance[0] == pytest.approx(0.01, rel=0.05)
    assert centred.variance[0] == pytest.approx(0.005, rel=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_propagation_comes_close_to_brute_force_for_correlated_terms(seed):
    rng = np.random.default_rng(seed)
    gram = Gram(np.array([1, 3]), np.array([[1.0, 0.6], [0.6, 1.2]]))
    design = np.eye(4)
    design[np.ix_([1, 3], [1, 3])] = gram.matrix
    truth = rng.choice([0.0, 1.0], 4) * rng.normal(size=4)
    noise = rng.uniform(0.02, 0.1, 4)
    observed = design @ truth + rng.normal(size=4) * np.sqrt(noise)
    evidence = Evidence(PRIOR, (Observation(step=observed, start=np.zeros(4), precision=1 / noise),), gram)
    belief = evidence.belief(TERMS, 1e-9)
    mean, variance, _ = enumerated(observed, np.diag(noise + 1e-9), design)
    assert (np.abs(belief.mean - mean) / np.sqrt(variance)).max() < 0.5
    assert np.sqrt(belief.variance).max() < 3 * np.sqrt(variance).max() + 0.05
    naive = Evidence(PRIOR, evidence.observations).belief(TERMS, 1e-9)
    assert np.abs(belief.mean - mean).max() <= np.abs(naive.mean - mean).max() + 0.05


def outcome_belief(lines):
    """What is known of an outcome whose columns have these lines, each seen with an sd of 0.05."""
    seen = Observation(step=np.array([0.0, lines[0], 0.0, lines[1]]), start=np.zeros(4), precision=np.full(4, 400.0))
    return Evidence(PRIOR, (seen,)).belief(TERMS, 0.0)


def test_a_column_that_matters_to_the_outcome_is_sooner_believed_to_matter_to_the_effect():
    faint = Observation(step=np.array([0.5, 0.3, 0.0, 0.3]), start=np.zeros(4), precision=np.full(4, 25.0))
    evidence = Evidence(PRIOR, (faint,)).favouring(outcome_belief((1.0, 0.0)))
    odds = np.exp(evidence.favour)
    assert odds.mean() == pytest.approx(1.0)
    assert UNRELATED <= odds[1] / odds[0] < 0.5
    favoured, alone = evidence.belief(TERMS, 0.0), Evidence(PRIOR, (faint,)).belief(TERMS, 0.0)
    assert favoured.matters[(0,)] > alone.matters[(0,)]
    assert favoured.matters[(1,)] < alone.matters[(1,)]
    assert favoured.mean[1] / favoured.mean[3] > 2 * alone.mean[1] / alone.mean[3]


def test_nothing_is_favoured_where_all_columns_matter_alike_to_the_outcome():
    same = dataclasses.replace(PRIOR, width=3)
    terms = ((), ((0, 1),), ((1, 1),), ((2, 1),))
    seen = Observation(step=np.array([0.0, 0.8, 0.8, 0.8]), start=np.zeros(4), precision=np.full(4, 400.0))
    evidence = Evidence(same).favouring(Evidence(same, (seen,)).belief(terms, 0.0))
    np.testing.assert_allclose(evidence.favour, 0.0, atol=1e-12)


def test_strong_evidence_outweighs_a_lack_of_favour():
    clear = Observation(step=np.array([0.5, 0.0, 0.0, 1.5]), start=np.zeros(4), precision=np.full(4, 100.0))
    belief = Evidence(PRIOR, (clear,)).favouring(outcome_belief((1.0, 0.0))).belief(TERMS, 0.0)
    assert belief.matters[(1,)] > 0.99
    assert belief.mean[3] == pytest.approx(1.5, abs=0.05)


def test_rounds_add_up_to_one_observation():
    rng = np.random.default_rng(5)
    starts, steps, precision = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.uniform(1, 9, (3, 4))
    rounds = tuple(Observation(*fields) for fields in zip(steps, starts, precision, strict=True))
    total = precision.sum(axis=0)
    pooled = ((starts + steps) * precision).sum(axis=0) / total
    once = Observation(step=pooled, start=np.zeros(4), precision=total)
    several, single = (Evidence(PRIOR, seen).belief(TERMS, 0.1) for seen in (rounds, (once,)))
    np.testing.assert_allclose(several.mean, single.mean)
    np.testing.assert_allclose(several.variance, single.variance)


def test_a_term_that_no_round_looked_at_is_not_inferred_from_others():
    """Its neighbour is seen far from where a prior would have it: propagation must not put the blame on the unseen."""
    gram = Gram(np.array([1, 2]), np.array([[1.0, -0.28], [-0.28, 0.64]]))
    seen = Observation(np.array([0.5, -9.0, 0.0, 0.0]), np.zeros(4), np.array([25.0, 25.0, 0.0, 25.0]))
    belief = Evidence(PRIOR, (seen,), gram).belief(TERMS, 0.001)
    alone = Evidence(PRIOR, (seen,)).belief(TERMS, 0.001)
    np.testing.assert_allclose(belief.mean, alone.mean, rtol=0.05, atol=1e-12)
    assert belief.mean[2] == 0
    assert belief.variance[2] <= PRIOR.sizes.max() ** 2
    assert belief.joint.terms.tolist() == [1]
    np.testing.assert_allclose(belief.joint.correlation, [[1.0]])


def test_terms_that_came_later_keep_their_prior():
    seen = Observation(step=np.array([1.0, 0.2]), start=np.zeros(2), precision=np.full(2, 50.0))
    belief = Evidence(PRIOR, (seen,)).belief(TERMS, 0.0)
    assert belief.mean[3] == pytest.approx(0.0, abs=1e-12)
    assert belief.variance[3] > 0.05


@pytest.mark.parametrize("highest", range(1, 9))
def test_degrees_beyond_the_basis_are_the_sums_of_their_laws(highest):
    whole = np.array([np.pi**2 / 6, (np.i0(4.0) - 1) / 4, 1 / (1 - 0.12)])  # zeta, Bessel and geometric series
    within = falling(np.arange(1.0, highest + 1)).sum(axis=1)
    np.testing.assert_allclose(fallen(np.array([float(highest)]))[:, 0], whole - within, rtol=1e-6, atol=1e-12)


def test_what_lies_beyond_is_large_for_jumps_and_small_for_curves():
    terms = ((), *(((0, k),) for k in range(1, 9)))
    degrees = np.arange(1, 9)
    jump, curve = 0.9 / degrees, 0.9 * 0.3 ** (degrees - 1)

    def beyond(coefficients, weight=1.0):
        seen = Observation(step=np.r_[0.0, coefficients], start=np.zeros(9), precision=np.full(9, 1e4))
        return Evidence(PRIOR, (seen,)).belief(terms, 1e-4).beyond(np.full(2, weight))

    left = 0.81 * (np.pi**2 / 6 - (degrees**-2.0).sum())
    assert left / 3 < beyond(jump) < 3 * left
    assert beyond(curve) < left / 100
    assert beyond(jump, weight=0.3) == pytest.approx(0.3 * beyond(jump))


def test_a_column_of_two_values_has_nothing_beyond():
    seen = Observation(step=np.array([0.0, 1.0]), start=np.zeros(2), precision=np.full(2, 100.0))
    assert Evidence(PRIOR, (seen,)).belief(((), ((0, 1),)), 0.01).beyond(np.ones(2)) == 0.0
