"""Is the effect really varying? The best linear prediction of the effect by its own estimate.

After Chernozhukov, Demirer, Duflo and Fernández-Val: the slope of the scores on centred predictions, among people on
whom nothing was fitted. If everybody has the same effect, it is zero whatever the predictions are.
"""

import numpy as np

from dpcate.diagnostics.held_out import HeldOut, Look
from dpcate.diagnostics.variance import widened
from dpcate.findings import Heterogeneity, Ratio

WEIGHTS = (0.25, 0.4, 0.4, 1.0, 0.4, 0.5)


def private_heterogeneity(people: HeldOut, look: Look, mu: float) -> Heterogeneity:
    """One vector of sums: of 1, e, s, es, s² and e²s², with scores e and predictions s scaled to [−1, 1]."""
    centre, low, high = (float(look.quantile(level)) for level in (0.5, 0.02, 0.98))
    width = max(centre - low, high - centre, people.finest)
    clip = look.clip + width
    s = np.clip((people.prediction - centre) / width, -1, 1)
    e = np.clip((people.prediction + people.error - centre) / clip, -1, 1)
    entries = (np.ones(len(s)), e, s, e * s, s**2, (e * s) ** 2)
    everyone = np.zeros(len(s), dtype=int)
    noisy = people.sums.in_ball("heterogeneity: slope", entries, WEIGHTS, mu, everyone, 1)
    return Heterogeneity(slope=_slope(noisy.value, noisy.sd, clip, width, people.sums.rows_per_person))


def _slope(released: np.ndarray, noise: float, clip: float, width: float, rows_per_person: int) -> Ratio:
    """Σ(e − ē)(s − s̄) over Σ(s − s̄)². Privacy noise enters by first order, and products of noise by their own variance.

    Sampling noise is bounded by Σe²s², the sum around zero in place of around the means and the line.
    """
    sd = noise / np.asarray(WEIGHTS)
    n, e, s, es, ss, eess = released / WEIGHTS
    n = max(n, 3 * sd[0], 1.0)
    joint, squares = es - e * s / n, ss - (s**2 - sd[2] ** 2) / n
    of_joint = np.array([e * s / n**2, -s / n, -e / n, 1.0, 0.0]) * sd[:5]
    of_squares = np.array([s**2 / n**2, 0.0, -2 * s / n, 0.0, 1.0]) * sd[:5]
    product = (sd[1] * sd[2] / n) ** 2
    variance = widened(of_joint @ of_joint + product, rows_per_person * eess, rows_per_person * sd[5])
    return Ratio(
        numerator=float(clip * joint),
        denominator=float(width * squares),
        numerator_variance=float(clip**2 * variance),
        denominator_variance=float(width**2 * (of_squares @ of_squares + 2 * (sd[2] ** 2 / n) ** 2)),
        covariance=float(clip * width * (of_joint @ of_squares)),
    )
