"""The average effect over the private population: one clipped mean of doubly robust scores.

With any released effect τ̂ and nuisances,  ψ = τ̂(x) + (ρφ − ρτ̂(x))/λ(π(x))  has the population's average effect as
its mean if the outcome model or the propensity is right (for the DR-learner ψ = φ). Counts of |ψ − guess| choose a clip
that hardly touches a row, so it does not bias the mean; the interval holds privacy noise and the population's spread.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.privacy import Mechanisms, Shares
from dpcate.privacy.sensitivity import clipped_sum, histogram
from dpcate.regress.problem import Problem

SHARES = Shares({"sizes": 0.2, "mean": 0.8})
BINS = 24  # each √2 wider than the one below
TAIL = 0.005  # the part of rows that the clip may touch


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
    largest = 8 * problem.span
    edges = largest * 2.0 ** (-np.arange(BINS)[::-1] / 2)
    bins = np.searchsorted(edges, np.minimum(np.abs(score), 0.999999 * largest), side="right")
    one_bin = histogram(neighbours=problem.neighbours, rows=problem.rows_per_person).scaled(1 / problem.n)
    counts = mechanisms.vector(
        "average effect: sizes",
        np.bincount(bins[present], minlength=BINS) / problem.n,
        sensitivity=one_bin,
        mu=SHARES.mu("sizes", mu),
        part=problem.part,
    )
    clip, spread = _reach_and_spread(counts.value, counts.sd, edges)
    bound = clipped_sum(norm_bound=clip, neighbours=problem.neighbours, rows=problem.rows_per_person)
    mean = mechanisms.vector(
        "average effect",
        [np.clip(score, -clip, clip).sum() / problem.n],
        sensitivity=bound.scaled(1 / problem.n),
        mu=SHARES.mu("mean", mu),
        part=problem.part,
    )
    value = float(np.clip(guess + mean.value[0], -problem.span, problem.span))
    return AverageEffect(value, math.hypot(mean.sd, spread / math.sqrt(problem.n)))


def _reach_and_spread(counts: np.ndarray, sd: float, edges: np.ndarray) -> tuple[float, float]:
    """Where the tail begins that noise cannot explain away, and the root mean square below it, from counts."""
    above = np.cumsum(counts[::-1])[::-1] - counts
    unsure = 2 * sd * np.sqrt(np.arange(len(counts))[::-1])
    reach = int(np.argmax(above <= TAIL + unsure))
    shrunk = np.maximum(counts[: reach + 1], 0.0) / max(float(np.maximum(counts[: reach + 1], 0.0).sum()), 1e-12)
    middle = edges[: reach + 1] / 2**0.25
    return float(edges[reach]), math.sqrt(float(shrunk @ middle**2))
