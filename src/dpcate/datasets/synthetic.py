"""The paper's two synthetic datasets, with the truth beside them.

X ~ U[0,1]^q;  A = 1{X'β ≥ η},  η ~ U[−1,1];  Y = τ(X)A + X'γ + noise,  noise ~ U[−1,1].
Dataset 1: q = 2, τ = exp(2x₀) + 3 sin(4x₀).  Dataset 2: q = 30, τ = exp(2x₀) + 3 sin(4x₁).
As printed, Dataset 2 would have X'β near 2.25, so everybody would be treated; β and γ have five non-zero
coordinates here, 0 and 1 among them. The outcome bounds follow from these formulas, not from rows.
"""

import numpy as np

from dpcate.datasets.dataset import Dataset
from dpcate.errors import InputError
from dpcate.schema import Number, Outcome, Schema

SUPPORT = 5
NOTE = "The bounds follow from the formulas that make the rows."


def synthetic(which: int, n: int, seed: int) -> Dataset:
    """Dataset 1 or 2 of the paper with n rows."""
    if which not in (1, 2):
        raise InputError("there are two synthetic datasets: 1 and 2")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError("n must be a positive whole number")
    rng = np.random.default_rng(seed)
    q = 2 if which == 1 else 30
    support = np.arange(q) < SUPPORT
    X = rng.uniform(size=(n, q))
    beta = np.where(support, rng.uniform(0, 0.3, q), 0.0)
    gamma = np.where(support, rng.uniform(0, 1, q), 0.0)
    propensity = np.clip((1 + X @ beta) / 2, 0, 1)
    T = (rng.uniform(size=n) < propensity).astype(float)
    tau = true_effect(which, X)
    Y = tau * T + X @ gamma + rng.uniform(-1, 1, n)
    return Dataset(
        X=X,
        T=T,
        Y=Y,
        tau=tau,
        propensity=propensity,
        outcome_control=X @ gamma,
        schema=synthetic_schema(which),
        note=NOTE,
    )


def true_effect(which: int, X: np.ndarray) -> np.ndarray:
    return np.exp(2 * X[:, 0]) + 3 * np.sin(4 * X[:, which - 1])


def synthetic_schema(which: int) -> Schema:
    low, high = (-1.0, 8.45) if which == 1 else (-3.0, 16.4)
    return Schema(
        covariates={f"x{j}": Number(0.0, 1.0) for j in range(2 if which == 1 else 30)},
        treatment="treated",
        outcome=Outcome("outcome", low=low, high=high),
    )
