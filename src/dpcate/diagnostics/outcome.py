"""Outcome fit: how much of the outcome's variance the model m of E[Y|x] explains.

With r = y − m(x) and d = y − c, around a released c:  R² = 1 − Σr² / Σ(d − d̄)².  Sums of fourth order give the
sampling noise of the two sums of squares.
"""

import math

import numpy as np

from dpcate.bins import SIZE_BINS, size_bins, size_edges
from dpcate.diagnostics.counted import clip_from
from dpcate.diagnostics.sums import Sums
from dpcate.diagnostics.variance import widened
from dpcate.findings import OutcomeFit, Ratio
from dpcate.privacy import Shares

SHARES = Shares({"residuals": 0.1, "outcomes": 0.1, "sums": 0.8})
BEYOND = 1.7  # clips, in units of what sizes reach: the noise of squares grows with its square, and both are clipped
WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5)


def private_outcome_fit(
    sums: Sums, outcome: np.ndarray, predicted: np.ndarray, centre: float, span: float, mu: float
) -> OutcomeFit:
    """R² among these rows; `span` is the width of the outcome's range, `centre` where outcomes lie about."""
    deviation, residual = outcome - centre, outcome - predicted

    def clip(name: str, values: np.ndarray) -> float:
        bins = size_bins(values, size_edges(span))
        counts = sums.counts(f"outcome fit: sizes of {name}", bins, SIZE_BINS, SHARES.mu(name, mu))
        return clip_from(counts, span, BEYOND)

    c, d = clip("residuals", residual), clip("outcomes", deviation)
    r2, u = np.clip(residual / c, -1, 1) ** 2, np.clip(deviation / d, -1, 1)
    entries = (np.ones(len(u)), (u + 1) / 2, u**2, r2, r2**2, r2 * u**2, u**4)
    noisy = sums.in_box("outcome fit: sums", entries, WEIGHTS, SHARES.mu("sums", mu))
    return OutcomeFit(unexplained=_ratio(noisy.value / WEIGHTS, noisy.sd, c, d, sums.rows_per_person))


def _ratio(total: np.ndarray, sd: float, c: float, d: float, rows: int) -> Ratio:
    """Σr² over Σ(d − d̄)², in units of d²; noise enters by first order, and d̄² by second order too."""
    n, half, dd, rr, rrrr, rrdd, dddd = total
    n = max(n, 3 * sd, 1.0)
    shift = 2 * half - n
    squares = dd - (shift**2 - 5 * sd**2) / n
    gradient = np.array([2 * shift / n + shift**2 / n**2, -4 * shift / n, 1.0])
    noise, unit = rows * sd / WEIGHTS[-1], (c / d) ** 2
    of_rr = widened(sd**2, rows * (rrrr - rr**2 / n), noise)
    of_squares = widened(sd**2 * (gradient @ gradient) + 50 * sd**4 / n**2, rows * (dddd - dd**2 / n), noise)
    most = math.sqrt(max(of_rr - sd**2, 0.0) * max(of_squares - sd**2, 0.0))
    return Ratio(
        numerator=float(unit * rr),
        denominator=float(squares),
        numerator_variance=float(unit**2 * of_rr),
        denominator_variance=float(of_squares),
        covariance=float(unit * np.clip(rows * (rrdd - rr * dd / n), -most, most)),
    )
