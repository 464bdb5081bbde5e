"""Calibration: do people for whom more is predicted benefit as much more?

Held-out people are grouped by their prediction; the mean of the errors e of their scores is how far the group's mean
effect lies above its mean prediction.
"""

import numpy as np

from dpcate.diagnostics.held_out import HeldOut, Look
from dpcate.diagnostics.variance import widened
from dpcate.findings import Calibration, Group, Ratio

FEW_GROUPS, MANY_GROUPS = 3, 5
ENOUGH = 400.0  # n·μ from which there are many groups
WEIGHTS = (0.5, 1.0, 0.5, 0.35)


def private_calibration(people: HeldOut, look: Look, mu: float) -> Calibration:
    """For each group one vector of sums: of 1, e, e² and where in the group the prediction lies."""
    count = MANY_GROUPS if people.n * mu / people.sums.rows_per_person >= ENOUGH else FEW_GROUPS
    cuts = look.quantile(np.arange(1, count) / count)
    ends = np.concatenate([[look.ends[0]], cuts, [look.ends[1]]])
    groups = np.searchsorted(cuts, np.nan_to_num(people.prediction), side="right")
    middle, half = (ends[1:] + ends[:-1]) / 2, np.maximum((ends[1:] - ends[:-1]) / 2, people.finest)
    e = np.clip(people.error / look.clip, -1, 1)
    place = (people.prediction - middle[groups]) / half[groups]
    entries = (np.ones(len(e)), e, e**2, place)
    noisy = people.sums.in_ball("calibration: groups", entries, WEIGHTS, mu, groups, count)
    totals = noisy.value.reshape(count, len(WEIGHTS)) / WEIGHTS
    told = [
        _group(total, noisy.sd / np.asarray(WEIGHTS), look.clip, (middle[number], half[number]), people)
        for number, total in enumerate(totals)
    ]
    return Calibration(groups=told, cuts=cuts.tolist(), limit=people.limit)


def _group(total: np.ndarray, sd: np.ndarray, clip: float, place: tuple[float, float], people: HeldOut) -> Group:
    n, e, ee, where = total
    known = max(n, 3 * sd[0], 1.0)
    rows = people.sums.rows_per_person
    variance = widened(sd[1] ** 2, rows * (ee - e**2 / known), rows * sd[2])
    return Group(
        predicted=float(place[0] + place[1] * np.clip(where / known, -1, 1)),
        excess=Ratio(
            numerator=float(clip * e),
            denominator=float(n),
            numerator_variance=float(clip**2 * variance),
            denominator_variance=float(sd[0] ** 2),
            covariance=0.0,
        ),
    )
