"""Private means and spreads of the encoded columns: what a standardised basis is built from.

Two passes: a coarse one with the public bound of the unit box, and a refined one clipped around the coarse answer. What
follows the two sums is post-processing: means are shrunk towards the middle, variances get the posterior mean under a
lognormal prior, so that noise never makes a column look nearly constant (its basis functions would explode).
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.privacy import Mechanisms, Neighbours, Noisy
from dpcate.privacy.sensitivity import clipped_sum

MEAN_PRIOR = 0.25  # prior sd of a column's mean
TYPICAL_VARIANCE, VARIANCE_DOUBT = 0.035, 0.9  # median and log-sd of a column's variance
LEAST_VARIANCE, LARGEST_VARIANCE = 0.0009, 0.25
COARSE_SHARE = 0.35  # of μ²
_GRID = np.exp(np.linspace(math.log(LEAST_VARIANCE), math.log(LARGEST_VARIANCE), 80))
_LOG_PRIOR = -0.5 * ((np.log(_GRID) - math.log(TYPICAL_VARIANCE)) / VARIANCE_DOUBT) ** 2


@dataclass(frozen=True)
class ColumnMoments:
    """Released means and sds of the columns, and the sd of the error in a mean."""

    means: np.ndarray
    sds: np.ndarray
    mean_error: float


@dataclass(frozen=True, kw_only=True)
class ColumnRows:
    """Encoded covariates of present rows (absent ones are zero), and the public facts around them."""

    x: np.ndarray
    present: np.ndarray
    n: float
    neighbours: Neighbours
    rows_per_person: int

    def __repr__(self) -> str:
        return "<ColumnRows: sealed>"

    def mean(self, statistic: np.ndarray, norm_bound: float, mechanisms: Mechanisms, mu: float, name: str) -> Noisy:
        """A norm-clipped mean of one vector per present row."""
        norms = np.maximum(np.linalg.norm(statistic, axis=1), 1e-300)
        weight = self.present * np.minimum(1.0, norm_bound / norms)
        sensitivity = clipped_sum(norm_bound=norm_bound, neighbours=self.neighbours, rows=self.rows_per_person)
        return mechanisms.vector(name, weight @ statistic / self.n, sensitivity=sensitivity.scaled(1 / self.n), mu=mu)


def private_columns(rows: ColumnRows, mechanisms: Mechanisms, mu: float) -> ColumnMoments:
    q, centred = rows.x.shape[1], rows.x - 0.5
    coarse = rows.mean(
        np.hstack([centred, centred**2]),
        math.sqrt(q * (0.25 + 0.0625)),
        mechanisms,
        mu * math.sqrt(COARSE_SHARE),
        "columns: coarse moments",
    )
    mean, doubt = _shrunk(coarse.value[:q], MEAN_PRIOR**2, coarse.sd)
    noise = coarse.sd**2 + 4 * mean**2 * doubt + 2 * doubt**2
    log_weights = _LOG_PRIOR + _likelihood(coarse.value[q:] - mean**2, noise)
    variance = _expected(log_weights)

    z = centred - mean
    bound = 1.2 * math.sqrt(float((variance + doubt + 2 * variance**2).sum()))
    refined = rows.mean(
        np.hstack([z, z**2 - variance]), bound, mechanisms, mu * math.sqrt(1 - COARSE_SHARE), "columns: refined moments"
    )
    shift, left = _shrunk(refined.value[:q], doubt, refined.sd)
    seen = variance + refined.value[q:] - shift**2
    log_weights = log_weights + _likelihood(seen, refined.sd**2 + 4 * shift**2 * left)
    spread = np.clip(_expected(log_weights), 0.0025, LARGEST_VARIANCE)
    return ColumnMoments(0.5 + mean + shift, np.sqrt(spread), math.sqrt(left))


def _shrunk(value: np.ndarray, prior: float, sd: float) -> tuple[np.ndarray, float]:
    """Posterior mean and variance of numbers around zero with this prior variance, observed with noise of this sd."""
    gain = prior / (prior + sd**2)
    return gain * value, prior * (1 - gain)


def _likelihood(seen: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return -0.5 * (seen[:, None] - _GRID) ** 2 / noise[:, None]


def _expected(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights @ _GRID / weights.sum(axis=1)
