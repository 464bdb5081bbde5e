"""The average effect over the private population: one clipped mean of doubly robust scores.

With any released effect τ̂ and nuisances,  ψ = τ̂(x) + (ρφ − ρτ̂(x))/λ(π(x))  has the population's average effect as
its mean if the outcome model or the propensity is right (for the DR-learner ψ = φ). Counts of |ψ − guess| by arm choose
a clip that hardly touches a row, so it does not bias the mean; the interval holds privacy noise and the spread of ψ.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.bins import SIZE_BINS, size_bins, size_edges
from dpcate.privacy import Mechanisms, Shares
from dpcate.privacy.sensitivity import clipped_sum, histogram
from dpcate.regress.problem import Problem
from dpcate.regress.sizes import Sizes, counted

SHARES = Shares({"sizes": 0.25, "mean": 0.75})
LARGEST = 4.0  # a score's size, in units of the outcome's range, beyond which nobody looks
TYPICAL, DOUBT = 0.2, 0.7  # prior of the scores' scale: lognormal, in the same units
CLIP = 3.0  # in units of the scale


@dataclass(frozen=True)
class AverageEffect:
    value: float
    sd: float


def private_average(
    problem: Problem, effect: np.ndarray, overlap: np.ndarray, guess: float, mechanisms: Mechanisms, mu: float
) -> AverageEffect:
    """The average effect and the sd of its error, spending μ; absent rows contribute nothing."""
    present = problem.rho > 0
    score = np.where(present, effect - guess + problem.scores(effect) / np.where(present, overlap, 1.0), 0.0)
    sizes = _sizes(problem, score, present, mechanisms, SHARES.mu("sizes", mu))
    scale = sizes.scale * np.exp(sizes.doubt)
    clip = float(min(max((CLIP * scale).max(), sizes.reach.max()), LARGEST * problem.span))
    bound = clipped_sum(norm_bound=clip, neighbours=problem.neighbours, rows=problem.rows_per_person)
    mean = mechanisms.vector(
        "average effect",
        [np.clip(score, -clip, clip).sum() / problem.n],
        sensitivity=bound.scaled(1 / problem.n),
        mu=SHARES.mu("mean", mu),
        part=problem.part,
    )
    value = float(np.clip(guess + mean.value[0], -problem.span, problem.span))
    return AverageEffect(value, math.hypot(mean.sd, math.sqrt(float(sizes.share @ scale**2) / problem.n)))


def _sizes(problem: Problem, score: np.ndarray, present: np.ndarray, mechanisms: Mechanisms, mu: float) -> Sizes:
    edges = size_edges(LARGEST * problem.span)
    bins = size_bins(score, edges)
    bins = bins if problem.treated is None else bins + SIZE_BINS * problem.treated.astype(int)
    counts = mechanisms.vector(
        "average effect: sizes",
        np.bincount(bins[present], minlength=2 * SIZE_BINS) / problem.n,
        sensitivity=histogram(neighbours=problem.neighbours, rows=problem.rows_per_person).scaled(1 / problem.n),
        mu=mu,
        part=problem.part,
    )
    return counted(counts, edges, Sizes.prior(TYPICAL * problem.span, DOUBT))
