"""Private means and spreads of the encoded columns: what a standardised basis is built from.

Two passes: a coarse one with the public bound of the unit box, shrunk towards the uniform law, and a refined one
clipped around the coarse answer. Everything after the two sums is post-processing.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.privacy import Mechanisms, Neighbours, Noisy
from dpcate.privacy.sensitivity import clipped_sum

UNIFORM_VARIANCE = 1 / 12
MEAN_PRIOR, VARIANCE_PRIOR = 0.25, 0.08  # prior sds of a column's mean and variance
LEAST_VARIANCE, LARGEST_VARIANCE = 0.004, 0.25


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
    """Half of μ² for each pass."""
    q, each = rows.x.shape[1], mu / math.sqrt(2)
    centred = rows.x - 0.5
    coarse = rows.mean(
        np.hstack([centred, centred**2]), math.sqrt(q * (0.25 + 0.0625)), mechanisms, each, "columns: coarse moments"
    )
    mean, mean_variance = _shrunk(coarse.value[:q], 0.0, MEAN_PRIOR**2, coarse.sd)
    second, second_variance = _shrunk(coarse.value[q:], UNIFORM_VARIANCE, VARIANCE_PRIOR**2, coarse.sd)
    variance = np.clip(second - mean**2, LEAST_VARIANCE, LARGEST_VARIANCE)
    variance_error = second_variance + 4 * mean**2 * mean_variance

    z = centred - mean
    bound = 1.2 * math.sqrt(variance.sum() + q * mean_variance + 0.03 * q)
    refined = rows.mean(np.hstack([z, z**2 - variance]), bound, mechanisms, each, "columns: refined moments")
    shift, left = _shrunk(refined.value[:q], 0.0, mean_variance, refined.sd)
    change = refined.value[q:] * variance_error / (variance_error + refined.sd**2)
    floor = max(
        LEAST_VARIANCE, 0.5 * refined.sd * math.sqrt(float(np.mean(variance_error / (variance_error + refined.sd**2))))
    )
    spread = np.clip(variance + change - shift**2, floor, LARGEST_VARIANCE)
    return ColumnMoments(0.5 + mean + shift, np.sqrt(spread), math.sqrt(left))


def _shrunk(value: np.ndarray, centre: float, prior: float, sd: float) -> tuple[np.ndarray, float]:
    """Posterior mean and variance of a number with this prior, observed with noise of this sd."""
    gain = prior / (prior + sd**2)
    return centre + gain * (value - centre), prior * (1 - gain)
