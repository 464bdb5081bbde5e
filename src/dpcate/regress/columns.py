"""Private means and spreads of the encoded columns: what a standardised basis is built from.

Declared bounds are often several times wider than the data, and by different factors. So the columns are looked at a
few times, each time in units of what the time before has shown of their spread: noise is spread evenly over columns in
these units, and a narrow column is found as precisely as a wide one. What follows the sums is post-processing: means
are shrunk towards the middle, variances get the posterior mean under a lognormal prior, so that noise never makes a
column look nearly constant (its basis functions would explode).
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtrc

from dpcate.privacy import Mechanisms, Neighbours, Noisy
from dpcate.privacy.sensitivity import clipped_sum

MEAN_PRIOR = 0.25  # prior sd of a column's mean
TYPICAL_VARIANCE, VARIANCE_DOUBT = 0.02, 1.2  # median and log-sd of a column's variance
LEAST_VARIANCE, LARGEST_VARIANCE = 0.0001, 0.25
LOOKS = (0.2, 0.3, 0.5)  # shares of μ²
FURTHEST, LARGEST_SQUARE = 3.0, 6.0  # where a column in units of its spread, and its square, are cut off
NORM = 1.1  # where a row is cut off, relative to a typical row
SQUARES = 0.4  # the weight of squares next to the columns themselves
_GRID = np.exp(np.linspace(math.log(LEAST_VARIANCE), math.log(LARGEST_VARIANCE), 80))


@dataclass(frozen=True)
class ColumnMoments:
    """Released means and sds of the columns, and the typical error of a mean, in sds."""

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


@dataclass(frozen=True)
class _Known:
    """Each column's mean with its variance, and the log-weights of its possible variances."""

    mean: np.ndarray
    doubt: np.ndarray
    log_weights: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        weights = np.exp(self.log_weights - self.log_weights.max(axis=1, keepdims=True))
        return weights @ _GRID / weights.sum(axis=1)


def private_columns(rows: ColumnRows, mechanisms: Mechanisms, mu: float) -> ColumnMoments:
    q = rows.x.shape[1]
    prior = -0.5 * ((np.log(_GRID) - math.log(TYPICAL_VARIANCE)) / VARIANCE_DOUBT) ** 2
    known = _Known(np.full(q, 0.5), np.full(q, MEAN_PRIOR**2), np.tile(prior, (q, 1)))
    for number, share in enumerate(LOOKS):
        known = _looked(known, rows, mechanisms, mu * math.sqrt(share), f"columns: look {number + 1}")
    sds = np.sqrt(known.variance)
    return ColumnMoments(known.mean, sds, math.sqrt(float((known.doubt / sds**2).mean())))


def _looked(known: _Known, rows: ColumnRows, mechanisms: Mechanisms, mu: float, name: str) -> _Known:
    """Means of the columns and of their squares around what is known, in units of how far values may lie from it."""
    unit = np.sqrt(known.variance + known.doubt)
    z = (rows.x - known.mean) / unit
    far, squares = np.clip(z, -FURTHEST, FURTHEST), np.minimum(z**2, LARGEST_SQUARE)
    statistic = np.hstack([far, SQUARES * (squares - 1)])
    q = len(unit)
    noisy = rows.mean(statistic, NORM * math.sqrt(q * (1 + 2 * SQUARES**2)), mechanisms, mu, name)
    noise = noisy.sd**2
    gain = known.doubt / (known.doubt + noise * unit**2)
    shift, doubt = gain * noisy.value[:q] * unit, known.doubt * (1 - gain)
    seen = noisy.value[q:] / SQUARES + 1
    ratio = (_GRID + shift[:, None] ** 2 + doubt[:, None]) / unit[:, None] ** 2
    expected = cut_square(ratio)
    spread = noise / SQUARES**2 + 4 * (shift**2 * doubt + doubt**2 / 2) / unit**4
    likelihood = -0.5 * (seen[:, None] - expected) ** 2 / spread[:, None]
    return dataclasses.replace(known, mean=known.mean + shift, doubt=doubt, log_weights=known.log_weights + likelihood)


def cut_square(variance: np.ndarray) -> np.ndarray:
    """E[min(z², LARGEST_SQUARE)] of a normal z around zero."""
    limit = LARGEST_SQUARE / variance
    return variance * chdtr(3, limit) + LARGEST_SQUARE * chdtrc(1, limit)
