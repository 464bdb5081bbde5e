"""What counts say of targets and residuals: where they lie, how large they are, how far their tails reach."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from dpcate.privacy import Noisy

TYPICAL_SCALE, SCALE_DOUBT = 1 / 7, 0.7  # prior of a scale: lognormal around this part of the range
LOCATION_DOUBT = 1 / 4  # prior sd of a location, as a part of the range
TAIL = 0.06  # the part of a group's residuals that a clip may touch
NORMAL_MISFIT = 0.03  # how far a bin's share may be from the normal law's
SHARE_DOUBT = 0.1  # prior sd of a group's share around what was believed before


@dataclass(frozen=True)
class Place:
    """Where targets lie, and their scale, each with its sd (of the logarithm, for the scale)."""

    centre: float
    doubt: float
    scale: float
    scale_doubt: float


@dataclass(frozen=True)
class Sizes:
    """By group: the typical |residual|, the sd of its logarithm, the size few exceed, and the group's share."""

    scale: np.ndarray
    doubt: np.ndarray
    reach: np.ndarray
    share: np.ndarray

    @classmethod
    def prior(cls, scale: float, doubt: float, second: float = 0.5) -> "Sizes":
        """Before anything was counted; `second` is the share of the second group, as far as it is known."""
        return cls(np.full(2, scale), np.full(2, doubt), np.full(2, scale), np.array([1 - second, second]))


def located(counts: Noisy, low: float, high: float) -> Place:
    """Location and scale of targets from equal bins: normal likelihood on a grid, wide priors."""
    span, bins = high - low, len(counts.value)
    edges = np.linspace(low, high, bins + 1)[1:-1]
    centres = np.linspace(low, high, 4 * bins + 1)
    steps = np.linspace(-3, 1.8, 40)
    scales = math.log(TYPICAL_SCALE * span) + SCALE_DOUBT * steps
    below = norm.cdf((edges - centres[:, None, None]) / np.exp(scales)[:, None])
    ends = (*below.shape[:2], 1)
    expected = np.diff(np.concatenate([np.zeros(ends), below, np.ones(ends)], axis=2), axis=2)
    misfit = ((counts.value - expected) ** 2).sum(axis=2) / (counts.sd**2 + 0.02**2)
    away = (centres - (low + high) / 2) / (LOCATION_DOUBT * span)
    weights = _normalised(-0.5 * misfit - 0.5 * steps**2 - 0.5 * away[:, None] ** 2)
    centre, doubt = _moments(weights.sum(axis=1), centres)
    log_scale, scale_doubt = _moments(weights.sum(axis=0), scales)
    return Place(centre, doubt, math.exp(log_scale), max(scale_doubt, 0.1))


def counted(counts: Noisy, edges: np.ndarray, before: Sizes) -> Sizes:
    """Sizes from counts in geometric bins by group: half-normal likelihood, lognormal prior from the round before.

    The reach is where a tail of the counts begins that their noise cannot explain away: residuals of two kinds of rows
    are far from half-normal, and clipping one kind would bias a mean.
    """
    rows = counts.value.reshape(2, -1)
    share = _shares(rows, counts.sd, before.share[1])
    scale, doubt, reach = np.empty(2), np.empty(2), np.empty(2)
    spread = np.linspace(-3, 3, 121)
    for group, (seen, part) in enumerate(zip(rows, share, strict=True)):
        candidates = math.log(before.scale[group]) + math.hypot(before.doubt[group], 0.25) * spread
        below = 2 * norm.cdf(edges[None, :-1] / np.exp(candidates)[:, None]) - 1
        ends = np.zeros((len(candidates), 1))
        expected = part * np.diff(np.hstack([ends, below, ends + 1]))
        misfit = ((seen - expected) ** 2).sum(axis=1) / (counts.sd**2 + (NORMAL_MISFIT * part) ** 2)
        log_scale, doubt[group] = _moments(_normalised(-0.5 * misfit - 0.5 * spread**2), candidates)
        scale[group] = math.exp(log_scale)
        above = np.cumsum(seen[::-1])[::-1] - seen
        unsure = counts.sd * np.sqrt(np.arange(len(seen))[::-1])
        reach[group] = edges[int(np.argmax(above <= TAIL * part + unsure))]
    return Sizes(scale, np.maximum(doubt, 1e-3), reach, share)


def _shares(rows: np.ndarray, sd: float, before: float) -> np.ndarray:
    """The groups' shares: the counts' own, shrunk by their noise towards what was believed before."""
    seen, noise = rows.sum(axis=1), sd**2 * rows.shape[1] / 2
    gain = SHARE_DOUBT**2 / (SHARE_DOUBT**2 + noise)
    second = np.clip(before + gain * (0.5 + (seen[1] - seen[0]) / 2 - before), 0.02, 0.98)
    return np.array([1 - second, second])


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _moments(weights: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    mean = float(weights @ values)
    return mean, math.sqrt(max(float(weights @ (values - mean) ** 2), 0.0))
