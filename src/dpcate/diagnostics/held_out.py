"""People on whom the effect was not fitted: their predictions and scores, and a first look at how these are spread.

A score is  τ̂(x) + e  with  e = (ρφ − ρτ̂(x))/λ(π(x)).  Its mean given x is the effect if the propensity is right,
whatever τ̂ and the outcome model are, and nearly so if both models are nearly right. τ̂ and the nuisances come from other
people, so what is chance in a score is no part of τ̂.
"""

from dataclasses import dataclass

import numpy as np

from dpcate.bins import SIZE_BINS, size_bins, size_edges
from dpcate.diagnostics.counted import clip_from, quantiles
from dpcate.diagnostics.sums import Sums
from dpcate.privacy import Shares

LOOK = Shares({"errors": 0.5, "predictions": 0.5})
LARGEST = 4.0  # an error's size, in units of the outcome's range, beyond which nobody looks
BEYOND = 2.0  # the clip, in units of what errors reach: counts tell little about tails, and means need them
PREDICTION_BINS = 16


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Rows as predictions τ̂(x) and errors e of their scores.

    Public: `n`, their number; `reference`, predictions all over the box; `limit`, the width of the outcome's range.
    """

    sums: Sums
    prediction: np.ndarray
    error: np.ndarray
    n: float
    reference: np.ndarray
    limit: float

    @property
    def finest(self) -> float:
        """Differences between effects below this are none."""
        return 1e-4 * self.limit

    def __repr__(self) -> str:
        return "<HeldOut: sealed>"


@dataclass(frozen=True)
class Look:
    """A clip of the errors, and noisy quantiles of the predictions, from `ends` to `ends`."""

    clip: float
    ends: tuple[float, float]
    levels: np.ndarray
    places: np.ndarray

    def quantile(self, level: float | np.ndarray) -> np.ndarray:
        return np.interp(level, self.levels, self.places)


def private_look(people: HeldOut, mu: float) -> Look:
    largest = LARGEST * people.limit
    sizes = people.sums.counts(
        "held-out people: sizes of errors",
        size_bins(people.error, size_edges(largest)),
        SIZE_BINS,
        LOOK.mu("errors", mu),
    )
    low, high = float(people.reference.min()), float(people.reference.max())
    high = max(high, low + people.finest)
    place = np.nan_to_num((people.prediction - low) / (high - low), nan=0.5)
    bins = np.clip((place * PREDICTION_BINS).astype(int), 0, PREDICTION_BINS - 1)
    counts = people.sums.counts("held-out people: predictions", bins, PREDICTION_BINS, LOOK.mu("predictions", mu))
    levels = np.linspace(0, 1, 101)
    places = quantiles(counts, np.linspace(low, high, PREDICTION_BINS + 1), levels)
    return Look(clip_from(sizes, largest, BEYOND), (low, high), levels, places)
