"""The public rules of the moments engine: functions of n·μ, the number of columns and the outcome's range alone.

Constants were chosen on random problems of our own, a few with a look at published data: docs/protocol.md says which.
"""

import math
from dataclasses import dataclass

import numpy as np

SIZE_SHARE = 0.08  # of a round, for the counts of residual sizes
GENTLEST, STERNEST = 3.0, 0.5  # how much less and more is clipped, at most, by which noise outweighs which (as squares)
DROWNING = 40.0  # n·μ² up to which privacy noise outweighs sampling noise, for ten terms
DROWNED = 0.15  # sampling noise over privacy noise, below which more is clipped
GRAM_SHARE = 0.07  # of a stage, for the second moment of the terms that matter
GRAM_NOISE = 0.3  # its largest tolerated noise, as a spectral norm
FEWEST_GRAM = 4
CENTRED = 0.7  # an error of a column's mean, in sds, at which half of the prior size is given up
PAIRED_COLUMNS = 5
HIGHEST_DEGREE = 8  # how far a column that matters may grow
EFFECT_SIZES = np.array([0.12, 0.25, 0.5, 1.0])  # of a column's line, in units of the outcome's scale
OUTCOME_SIZES = np.array([0.12, 0.25, 0.5, 1.0])
PROPENSITY_SIZES = np.array([0.03, 0.06, 0.12, 0.24])
AVERAGE_SIZES = np.array([0.25, 0.5, 1.0, 2.0])  # of the average effect, in the same units
EFFECT_COLUMNS = np.array([3.0, 10.0, 30.0])  # how many columns may matter
OUTCOME_COLUMNS = np.array([1.0, 3.0, 10.0, 30.0])


@dataclass(frozen=True)
class Clip:
    """Where residuals are clipped, in units of their scale, and the norm bound relative to that."""

    residual: float
    norm: float


EARLY, LATE, FIRST = Clip(1.5, 0.75), Clip(1.4, 0.75), Clip(1.5, 1.2)


def trust(mean_error: float) -> float:
    """Where columns are not even known well enough to be centred (error in sds), heterogeneity is beyond reach."""
    return 1 / (1 + (mean_error / CENTRED) ** 2)


def first_degree(signal: float, width: int) -> int:
    """Degree 4 at once where columns are few or the budget large; others may grow it later."""
    return 4 if width <= 5 or signal > 600 * width else 3


def late_rounds(n: float, mu: float) -> int:
    """Five where rows' own noise counts; four where privacy noise drowns it: clips are stern there, and more looks
    repeat the same errors."""
    return 5 if n * mu**2 > DROWNING else 4


def gram_terms(signal: float) -> int:
    """How many terms' second moments can be released without drowning in noise; 0 if too few to bother."""
    most = int((GRAM_NOISE * signal * math.sqrt(GRAM_SHARE) / 1.7) ** (2 / 3))
    return most if most >= FEWEST_GRAM else 0


def gentleness(n: float, mu: float, effective: float) -> float:
    """What multiplies clips: more than 1 where privacy noise is below sampling noise, since clipping biases and costs
    little there; less than 1 where it drowns all else, since a bias counts for little there and noise for all."""
    ratio = math.sqrt(n * mu**2 / (4 * effective))
    return math.sqrt(min(max(ratio, min(ratio / DROWNED, 1.0), STERNEST), GENTLEST))
