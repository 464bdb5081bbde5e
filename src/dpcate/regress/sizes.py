"""What counts say of targets and residuals: where they lie, how large they are, how far their tails reach."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpcate.privacy import Noisy

TYPICAL_SCALE, SCALE_DOUBT = 1 / 7, 0.7  # prior of a scale: lognormal around this part of the range
LOCATION_DOUBT = 1 / 4  # prior sd of a location, as a part of the range
PLACE_BINS, FAR = 12, 2.0  # in which targets are located, so many sds around where they are believed to lie
PLACE_MISFIT = 0.02  # how far the share of such a bin may be from the normal law's
TAIL = 0.06  # the part of a group's residuals that a clip may touch
SURELY = 2.0  # how many sds of noise a tail of the counts must exceed to be one
NORMAL_MISFIT = 0.03  # the same, of a bin of sizes
SIZE_DRIFT = 0.25  # sd of the logarithm by which a scale may have changed since it was last known
STEADY, QUIET = 0.12, 0.003  # the same where counts are noisier than this: noise is likelier than a change there
SHARE_DOUBT = 0.1  # prior sd of a group's share around what was believed before
SHAPE_DOUBT = 0.3  # prior sd of a mean square over that of a half-normal law
LEAST_SHAPE, LARGEST_SHAPE = 0.5, 2.0  # what it may be


@dataclass(frozen=True)
class Place:
    """Where targets lie, and their scale, each with its sd (of the logarithm, for the scale)."""

    centre: float
    doubt: float
    scale: float
    scale_doubt: float

    @classmethod
    def prior(cls, low: float, high: float) -> "Place":
        """Somewhere between the declared bounds, which may be far too wide."""
        span = high - low
        return cls((low + high) / 2, LOCATION_DOUBT * span, TYPICAL_SCALE * span, SCALE_DOUBT)


@dataclass(frozen=True)
class Sizes:
    """By group: the typical |residual|, the sd of its logarithm, the size few exceed, the group's share; and how much
    larger the mean square is than that of a half-normal law of this scale."""

    scale: np.ndarray
    doubt: np.ndarray
    reach: np.ndarray
    share: np.ndarray
    shape: np.ndarray | float = 1.0

    @classmethod
    def prior(cls, scale: float, doubt: float, second: float = 0.5) -> "Sizes":
        """Before anything was counted; `second` is the share of the second group, as far as it is known."""
        return cls(np.full(2, scale), np.full(2, doubt), np.full(2, scale), np.array([1 - second, second]))

    @classmethod
    def of_all(cls, scale: float, doubt: float) -> "Sizes":
        """The same where rows are not told apart."""
        return cls(np.array([scale]), np.array([doubt]), np.array([scale]), np.ones(1))

    @property
    def variance(self) -> np.ndarray:
        """The mean square of residuals by group."""
        return self.shape * self.scale**2

    @property
    def log_spread(self) -> tuple[float, float]:
        """The logarithm of the scale over all groups, and its sd."""
        squares = self.share * self.scale**2
        return 0.5 * math.log(squares.sum()), float(np.sqrt(squares**2 @ self.doubt**2)) / squares.sum()


def worth_locating(place: Place, low: float, high: float) -> np.ndarray:
    """The inner ends of equal bins around where targets are believed to lie; the outer bins are open."""
    centre = min(max(place.centre, low), high)
    reach = FAR * (place.scale * math.exp(place.scale_doubt) + place.doubt)
    return np.linspace(max(low, centre - reach), min(high, centre + reach), PLACE_BINS + 1)[1:-1]


def located(counts: Noisy, edges: np.ndarray, before: Place) -> Place:
    """Location and scale of targets from counts in bins with these inner ends: normal likelihood on a grid."""
    steps = np.linspace(-3, 3, 41)
    centres, scales = before.centre + before.doubt * steps, math.log(before.scale) + before.scale_doubt * steps
    expected = _between(ndtr((edges - centres[:, None, None]) / np.exp(scales)[:, None]))
    misfit = ((counts.value - expected) ** 2).sum(axis=2) / (counts.sd**2 + PLACE_MISFIT**2)
    unlikely = misfit + steps[:, None] ** 2 + steps**2
    weights = np.exp(-0.5 * (unlikely - unlikely.min()))
    centre, doubt = _moments(weights.sum(axis=1), centres)
    log_scale, scale_doubt = _moments(weights.sum(axis=0), scales)
    doubt, scale_doubt = (
        math.hypot(sd, (grid[1] - grid[0]) / 2) for sd, grid in ((doubt, centres), (scale_doubt, scales))
    )
    return Place(float(centre), doubt, math.exp(log_scale), max(scale_doubt, 0.1))


def worth_counting(edges: np.ndarray, before: Sizes) -> np.ndarray:
    """The edges around where residuals were believed to lie: bins far from there would add noise only."""
    away = np.exp(2 * np.hypot(before.doubt, SIZE_DRIFT))
    low, high = (before.scale / away).min() / 3, (before.scale * away).max() * 4
    first, last = np.searchsorted(edges, (low, high))
    first = min(first, len(edges) - 2)
    return edges[first : max(last, first + 1) + 1]


def counted(counts: Noisy, edges: np.ndarray, before: Sizes) -> Sizes:
    """Sizes from counts in geometric bins by group: half-normal likelihood, lognormal prior from the round before.

    The reach is where a tail of the counts begins that their noise cannot explain away: residuals of two kinds of rows
    are far from half-normal, and clipping one kind would bias a mean.
    """
    rows = counts.value.reshape(len(before.share), -1)
    share = _shares(rows, counts.sd, before.share)
    spread = np.linspace(-3, 3, 61)
    drift = STEADY + (SIZE_DRIFT - STEADY) / (1 + (counts.sd / QUIET) ** 2)
    candidates = np.log(before.scale)[:, None] + np.hypot(before.doubt, drift)[:, None] * spread
    expected = share[:, None, None] * _between(2 * ndtr(edges[:-1] / np.exp(candidates)[..., None]) - 1)
    misfit = ((rows[:, None] - expected) ** 2).sum(axis=2) / (counts.sd**2 + (NORMAL_MISFIT * share) ** 2)[:, None]
    unlikely = misfit + spread**2
    log_scale, doubt = _moments(np.exp(-0.5 * (unlikely - unlikely.min(axis=1, keepdims=True))), candidates)
    above = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1] - rows
    unsure = SURELY * counts.sd * np.sqrt(np.arange(len(edges))[::-1])
    reach = edges[np.argmax(above <= TAIL * share[:, None] + unsure, axis=1)]
    scale = np.exp(log_scale)
    shape = _shape(rows / share[:, None], counts.sd / share[:, None], edges / scale[:, None])
    return Sizes(scale, np.maximum(doubt, 1e-3), reach, share, shape)


def _between(below: np.ndarray) -> np.ndarray:
    """What lies in each bin, by what lies below the inner ends of the bins."""
    parts = np.empty((*below.shape[:-1], below.shape[-1] + 1))
    parts[..., :-1], parts[..., -1] = below, 1.0
    parts[..., 1:] -= below
    return parts


def _shape(rows: np.ndarray, sd: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The mean square in units of the scale: the half-normal law's 1, unless counts are quiet enough to tell. Within a
    bin it is about the product of the bin's ends."""
    squares = edges**2 / math.sqrt(2)
    gain = SHAPE_DOUBT**2 / (SHAPE_DOUBT**2 + ((sd * squares) ** 2).sum(axis=1))
    return np.clip(1 + gain * ((rows * squares).sum(axis=1) - 1), LEAST_SHAPE, LARGEST_SHAPE)


def _shares(rows: np.ndarray, sd: float, before: np.ndarray) -> np.ndarray:
    """The groups' shares: the counts' own, shrunk by their noise towards what was believed before."""
    if len(rows) == 1:
        return before
    seen, noise = rows.sum(axis=1), sd**2 * rows.shape[1] / 2
    gain = SHARE_DOUBT**2 / (SHARE_DOUBT**2 + noise)
    second = np.clip(before[1] + gain * (0.5 + (seen[1] - seen[0]) / 2 - before[1]), 0.02, 0.98)
    return np.array([1 - second, second])


def _moments(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean and sd along the last axis."""
    weights = weights / weights.sum(axis=-1, keepdims=True)
    mean = (weights * values).sum(axis=-1, keepdims=True)
    return mean[..., 0], np.sqrt((weights * (values - mean) ** 2).sum(axis=-1))
