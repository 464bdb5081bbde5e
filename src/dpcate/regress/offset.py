"""A private constant: the weighted average effect, before any heterogeneity is asked for.

Three norm-clipped sums: a coarse look (Σ clipped ρφ and Σ ρ), the size of what is left (counts of |score| in
doubling bins), and a refined look clipped to that size. A ridge penalty cannot tell a constant from the
rest and would shrink it; taking it out first costs little, because one number needs little noise.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.bins import size_bins, size_edges
from dpcate.privacy import Mechanisms, Noisy, Shares
from dpcate.privacy.sensitivity import clipped_sum, histogram
from dpcate.regress.problem import Problem
from dpcate.regress.sizes import Sizes, counted

PRIOR_SPREAD = 0.3  # prior sd of the constant, as a fraction of the span
COARSE_CLIP = 0.25  # as a fraction of the score limit
TYPICAL_SCORE, SCORE_DOUBT = 0.06, 1.0  # prior of |score|: lognormal, as a fraction of the score limit
REFINED_CLIP = 1.5  # in units of the private score scale

SHARES = Shares({"coarse": 0.35, "scale": 0.15, "refined": 0.5})
TWO_VALUED_SHARES = Shares({"coarse": 0.4, "refined": 0.6})  # the scale follows from the constant


@dataclass(frozen=True)
class Offset:
    """The constant, the sd of its privacy noise, the mean ρ, and the scale of the scores around it."""

    value: float
    sd: float
    curvature: float
    score_scale: float


def private_offset(problem: Problem, mechanisms: Mechanisms, mu: float, name: str) -> Offset:
    shares = TWO_VALUED_SHARES if problem.two_valued else SHARES
    coarse, variance, curvature = _coarse(problem, mechanisms, shares.mu("coarse", mu), name)
    scale = _two_valued_scale(problem, coarse)
    if not problem.two_valued:
        scale = _score_scale(problem, problem.scores(coarse), mechanisms, shares.mu("scale", mu), name)
    bound = problem.score_limit / 2 if problem.two_valued else min(REFINED_CLIP * scale, problem.score_limit / 2)
    clipped = np.clip(problem.scores(coarse), -bound, bound)
    refined = _mean(problem, mechanisms, f"{name}: refined constant", clipped[:, None], bound, shares.mu("refined", mu))
    noise = (refined.sd / curvature) ** 2
    gain = variance / (variance + noise)
    value = coarse + gain * refined.value[0] / curvature
    return Offset(_within(value, problem.span), math.sqrt(gain * noise), curvature, scale)


def _coarse(problem: Problem, mechanisms: Mechanisms, mu: float, name: str) -> tuple[float, float, float]:
    """The constant shrunk towards zero, the variance left, and the mean ρ shrunk towards its typical value."""
    bound = COARSE_CLIP * problem.score_limit
    weight = 0.35 * bound / problem.curvature  # puts ρ on the scale of the scores
    statistic = np.column_stack(
        [
            np.clip(problem.rho_phi, -bound, bound),
            weight * np.clip(problem.rho, 0.0, 2 * problem.curvature),
        ]
    )
    norm_bound = math.hypot(bound, 2 * weight * problem.curvature)
    released = _mean(problem, mechanisms, f"{name}: coarse constant", statistic, norm_bound, mu)
    trust = 1 / (1 + (released.sd / (0.3 * weight * problem.curvature)) ** 2)
    curvature = problem.curvature + trust * (released.value[1] / weight - problem.curvature)
    curvature = float(np.clip(curvature, 0.2 * problem.curvature, 2 * problem.curvature))
    prior, noise = (PRIOR_SPREAD * problem.span) ** 2, (released.sd / curvature) ** 2
    gain = prior / (prior + noise)
    return _within(gain * released.value[0] / curvature, problem.span), gain * noise, curvature


def _two_valued_scale(problem: Problem, value: float) -> float:
    """The sd of a score when the outcome takes two values, one of them with probability 1/2 + value/span."""
    return problem.multiplier * problem.span * math.sqrt(max(0.25 - (value / problem.span) ** 2, 0.04))


def _score_scale(problem: Problem, scores: np.ndarray, mechanisms: Mechanisms, mu: float, name: str) -> float:
    """How large scores are, from counts in geometric bins."""
    edges = size_edges(problem.score_limit)
    counts = mechanisms.vector(
        f"{name}: score sizes",
        np.bincount(size_bins(scores, edges)[problem.rho > 0], minlength=len(edges)) / problem.n,
        sensitivity=histogram(neighbours=problem.neighbours, rows=problem.rows_per_person).scaled(1 / problem.n),
        mu=mu,
        part=problem.part,
    )
    return float(counted(counts, edges, Sizes.of_all(TYPICAL_SCORE * problem.score_limit, SCORE_DOUBT)).scale[0])


def _mean(
    problem: Problem, mechanisms: Mechanisms, name: str, clipped: np.ndarray, norm_bound: float, mu: float
) -> Noisy:
    sensitivity = clipped_sum(
        norm_bound=norm_bound, neighbours=problem.neighbours, rows=problem.rows_per_person
    ).scaled(1 / problem.n)
    return mechanisms.vector(name, clipped.sum(axis=0) / problem.n, sensitivity=sensitivity, mu=mu, part=problem.part)


def _within(value: float, span: float) -> float:
    return float(np.clip(value, -span, span))
