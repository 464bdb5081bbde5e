"""Random confounded trials with known effects: on `tuning_trial` rules were chosen, `held_out_trial` is for the end.

The two share no shapes: tuning effects are sums of textbook curves and steps of single columns, with a product now and
then; held-out ones are random waves of several columns at once, trees, and thresholds of sums, on other columns, with
another propensity and other noise. None of them is a published benchmark.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, norm

from dpcate.bench.tuning import smooth_curves
from dpcate.schema import Number, Outcome, Schema

TEST_ROWS = 1000
Array = np.ndarray


@dataclass(frozen=True)
class Trial:
    """Rows to fit on, rows to test on, and the truth."""

    X: Array
    T: Array
    Y: Array
    points: Array
    tau: Array
    schema: Schema


def tuning_trial(seed: int, n: int, width: int) -> Trial:
    """Effects of one to twelve columns, in half of the trials some of the outcome's one to thirty, which the treatment
    often follows."""
    rng = np.random.default_rng([78, seed, width])
    x = _tuning_columns(rng, n + TEST_ROWS, width)
    known = _chosen(rng, width, 30)
    base = _sum_of_curves(rng, x, known, np.exp(rng.uniform(np.log(0.4), np.log(2.5))))
    modifiers = _chosen(rng, width, 12)
    if rng.random() < 0.5:
        modifiers = rng.permutation(known)[: len(modifiers)]
    effect = _sum_of_curves(rng, x, modifiers, np.exp(rng.uniform(np.log(0.3), np.log(3)))).sum(axis=1)
    if width > 1 and rng.random() < 0.3:
        product = _curve(rng)(x[:, modifiers[0]]) * _curve(rng)(x[:, rng.integers(width)])
        effect = effect + 0.5 * effect.std() * product
    logit = _sum_of_curves(rng, x, _chosen(rng, width, 20), rng.uniform(0.2, 1)).sum(axis=1)
    if rng.random() < 0.7:
        common = base @ rng.binomial(1, rng.uniform(0.3, 1), len(known)).astype(float)
        logit = logit + rng.uniform(0.1, 0.9) * rng.choice([-1, 1]) * standardised(common)
    propensity = np.clip(1 / (1 + np.exp(-(logit - logit.mean() + rng.uniform(-1.6, 0.6)))), 0.03, 0.97)
    slack = np.exp(rng.uniform(np.log(0.03), np.log(3), 2))
    return _trial(
        rng, _within_loose_bounds(rng, x), effect + rng.uniform(-3, 3), base.sum(axis=1), propensity, n, slack
    )


def _chosen(rng: np.random.Generator, width: int, most: int) -> Array:
    """A few columns or many: their number is uniform on a logarithmic scale."""
    return rng.choice(width, min(width, int(np.exp(rng.uniform(0, np.log(most + 0.99))))), replace=False)


def _sum_of_curves(rng: np.random.Generator, x: Array, chosen: Array, sd: float) -> Array:
    """Curves of the chosen columns, a column each, of random weights; their sum has mean 0 and this sd."""
    curves = [_curve(rng)(x[:, j]) for j in chosen]
    weighted = np.column_stack([rng.exponential() * curve / max(curve.std(), 0.02) for curve in curves])
    return (weighted - weighted.mean(axis=0)) * sd / max(weighted.sum(axis=1).std(), 1e-3)


def _within_loose_bounds(rng: np.random.Generator, x: Array) -> Array:
    """Most columns of more than two values fill a part of their declared range only."""
    width = x.shape[1]
    loose = np.array([len(np.unique(column)) > 2 for column in x.T]) & (rng.random(width) < 0.6)
    part = np.where(loose, rng.uniform(0.35, 1, width), 1.0)
    return x * part + (1 - part) * rng.random(width)


def held_out_trial(seed: int, n: int, width: int) -> Trial:
    rng = np.random.default_rng([4242, seed, width])
    x = _held_out_columns(rng, n + TEST_ROWS, width)
    shapes = (_wave, _tree, _threshold)
    effect = _scaled(rng, shapes[rng.integers(3)](rng, x))
    base = np.exp(rng.uniform(np.log(0.3), np.log(3))) * standardised(_wave(rng, x) + _tree(rng, x))
    propensity = np.clip(
        norm.cdf(rng.uniform(0, 0.7) * standardised(_wave(rng, x)) + rng.uniform(-0.6, 0.6)), 0.06, 0.94
    )
    return _trial(rng, x, effect, base, propensity, n, rng.uniform(0, 0.4, 2))


def _trial(
    rng: np.random.Generator, x: Array, effect: Array, base: Array, propensity: Array, n: int, slack: Array
) -> Trial:
    """`slack`: how much lower and higher than the outcomes their bounds are declared, in units of their range."""
    treated = (rng.random(len(x)) < propensity).astype(float)
    tails = (lambda m: rng.normal(size=m), lambda m: rng.uniform(-1.7, 1.7, m), lambda m: rng.standard_t(4, m) / 1.4)
    outcome = effect * treated + base + rng.uniform(0.3, 1.2) * tails[rng.integers(3)](len(x))
    low, high = np.quantile(outcome, [0.0005, 0.9995])
    slack = slack * (high - low)
    schema = Schema(
        covariates={f"x{j}": Number(0, 1) for j in range(x.shape[1])},
        treatment="treated",
        outcome=Outcome("outcome", low=float(low - slack[0]), high=float(high + slack[1])),
    )
    return Trial(x[:n], treated[:n], outcome[:n], x[n:], effect[n:], schema)


def _scaled(rng: np.random.Generator, effect: Array) -> Array:
    return standardised(effect) * np.exp(rng.uniform(np.log(0.2), np.log(3))) + rng.uniform(-3, 3)


def standardised(values: Array) -> Array:
    return (values - values.mean()) / max(values.std(), 0.05)


def _tuning_columns(rng: np.random.Generator, n: int, width: int) -> Array:
    """Uniform, skewed, bell-shaped and binary columns; in half of the trials groups of them are correlated."""
    correlation = rng.choice([0, 0, 0.3, 0.6])
    factors = rng.normal(size=(n, max(width // 6, 1)))
    shared = factors[:, rng.integers(0, factors.shape[1], width)]
    uniform = norm.cdf(np.sqrt(1 - correlation) * rng.normal(size=(n, width)) + np.sqrt(correlation) * shared)
    kinds = rng.choice(4, width, p=rng.dirichlet([1.5, 1, 1, 1]))
    return np.column_stack([_marginal(rng, kind, uniform[:, j]) for j, kind in enumerate(kinds)])


def _marginal(rng: np.random.Generator, kind: int, uniform: Array) -> Array:
    if kind == 0:
        return uniform
    if kind == 1:
        return beta.ppf(uniform, rng.uniform(0.8, 2), rng.uniform(3, 10))
    if kind == 2:
        return np.clip(0.5 + 0.15 * norm.ppf(np.clip(uniform, 1e-9, 1 - 1e-9)), 0, 1)
    return (uniform < rng.uniform(0.05, 0.8)).astype(float)


def _curve(rng: np.random.Generator) -> Callable[[Array], Array]:
    stretch, shift = rng.uniform(0.5, 1.5), rng.uniform(0.1, 0.9)
    curves = (*smooth_curves(stretch, shift), lambda x: 1.5 * np.sign(stretch - 1) * (x > shift))
    return curves[rng.integers(len(curves))]


def _held_out_columns(rng: np.random.Generator, n: int, width: int) -> Array:
    """Heavy-tailed common shocks; exponential, counted, rounded and two-humped columns."""
    shock = rng.standard_t(5, (n, 1)) * rng.choice([0.0, 0.5])
    latent = norm.cdf(
        (rng.normal(size=(n, width)) + shock * rng.choice([-1, 1], width)) / np.sqrt(1 + 0.25 * (shock.any()))
    )
    columns = []
    for j in range(width):
        u, kind = np.clip(latent[:, j], 1e-9, 1 - 1e-9), rng.integers(4)
        columns.append(
            (
                np.minimum(-np.log(1 - u) / 6, 1.0),
                np.minimum(np.floor(-4 * np.log(1 - u)), 20) / 20,
                np.round(u * 10) / 10,
                np.clip(np.where(u < 0.4, 0.25 + 0.3 * (u - 0.2), 0.75 + 0.3 * (u - 0.7)), 0, 1),
            )[kind]
        )
    return np.column_stack(columns)


def _some(rng: np.random.Generator, x: Array) -> Array:
    """A few columns, standardised by public-free means of the simulation."""
    chosen = rng.choice(x.shape[1], min(x.shape[1], int(rng.integers(1, 5))), replace=False)
    part = x[:, chosen]
    return (part - part.mean(axis=0)) / np.maximum(part.std(axis=0), 0.05)


def _wave(rng: np.random.Generator, x: Array) -> Array:
    z = _some(rng, x)
    return sum(np.cos(z @ rng.normal(size=z.shape[1]) * 0.8 + rng.uniform(0, 6)) for _ in range(3))


def _tree(rng: np.random.Generator, x: Array) -> Array:
    z = _some(rng, x)
    first, second = rng.integers(0, z.shape[1], 2)
    cut, other = rng.normal(size=2) * 0.5
    leaves = rng.normal(size=4)
    return leaves[2 * (z[:, first] > cut) + (z[:, second] > other)]


def _threshold(rng: np.random.Generator, x: Array) -> Array:
    z = _some(rng, x)
    return np.maximum(z @ rng.normal(size=z.shape[1]), 0)
