"""Trials in which columns have to do with each other: most of each is common to all, or the effect is one of products.

Outcomes have lines of six of ten columns, treatments follow one of these.
"""

import math

import numpy as np
from scipy.stats import norm

from dpcate.bench.problems import Trial
from dpcate.schema import Number, Outcome, Schema

FITTED, ASKED, WIDTH = 3000, 300, 10


def correlated_trial(seed: int) -> Trial:
    """Uniform columns of one common factor, most of each; the effect has curves of three of them."""
    rng = np.random.default_rng([6, seed])
    factor, own = rng.normal(size=(FITTED + ASKED, 1)), rng.normal(size=(FITTED + ASKED, WIDTH))
    x = norm.cdf(math.sqrt(0.8) * factor + math.sqrt(0.2) * own)
    return _trial(rng, x, 1 + 3 * x[:, 0] - 3 * x[:, 1] + 2 * np.sin(4 * x[:, 2]))


def product_trial(seed: int) -> Trial:
    """Uniform columns; the effect has a line, and more of a product of two columns."""
    rng = np.random.default_rng([7, seed])
    x = rng.uniform(size=(FITTED + ASKED, WIDTH))
    return _trial(rng, x, 1 + 2 * x[:, 0] + 10 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5))


def _trial(rng: np.random.Generator, x: np.ndarray, effect: np.ndarray) -> Trial:
    treated = (rng.random(len(x)) < 0.2 + 0.6 * x[:, 3]).astype(float)
    outcome = x[:, :6] @ rng.uniform(-2, 2, 6) + effect * treated + rng.normal(size=len(x))
    schema = Schema(
        covariates={f"x{j}": Number(0, 1) for j in range(WIDTH)},
        treatment="treated",
        outcome=Outcome("outcome", low=-14, high=18),
    )
    return Trial(x[:FITTED], treated[:FITTED], outcome[:FITTED], x[FITTED:], effect[FITTED:], schema)
