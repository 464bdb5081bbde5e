"""M3: rounds of norm-clipped score sums with Gaussian noise, each followed by a Bayesian update.

Rows are touched in two ways only, both below in `_Rounds`: counts of |score| in doubling bins, and
    b = (1/n) Σ clip(clip(ρφ − ρg(x), ±c)·d∘χ(x), C) + noise,
the scores of the current g = χ'θ along the basis χ, weighted by public or released d. Privacy needs the clip C and
nothing else. All that follows is a function of released numbers: a gain per coefficient (its prior variance against
privacy, sampling and model noise), evidence per column that it matters at all (spike and slab), the slope of the last
step (clipping and correlated columns change it), and, for the next round, where noise is best spent (water-filling).
"""

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from dpcate.errors import InputError
from dpcate.models.basis import basis_terms, column_polynomials, evaluate_basis
from dpcate.models.moments import MomentsModel
from dpcate.privacy import Mechanisms
from dpcate.privacy.sensitivity import clipped_sum
from dpcate.regress.offset import Offset, ScoreSizes, private_offset, score_sizes
from dpcate.regress.problem import Problem

CONSTANT_SHARE = 0.06  # of μ², for the constant before the rounds
COLUMNS_THAT_MATTER = 3.0  # a priori
HETEROGENEITY = 0.25  # prior sd of a column's line, in units of the residuals' scale
SCALE_SHARE = 0.04  # of a round, for the counts of score sizes
SLOPE_PRIOR, SLOPE_DRIFT = 0.25, 0.01
UNCENTRED = 0.1  # typical correlation between two basis functions that should have none


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Settings of M3; what is None follows from public numbers."""

    degree: int | None = None
    rounds: int | None = None

    name = "moments"

    def __post_init__(self) -> None:
        for name in ("degree", "rounds"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 20):
                raise InputError(f"{name} must be a whole number from 1 to 20, or None for the default rule")

    def fit(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> MomentsModel:
        """The private function, spending μ in all: a share on its constant, the rest on the rounds."""
        offset = private_offset(problem, mechanisms, mu * math.sqrt(CONSTANT_SHARE), name)
        basis = Basis.of(problem, problem.signal(mu), self.degree)
        belief = Belief.prior(basis, problem, offset)
        fractions = self._fractions(problem.signal(mu))
        for number, fraction in enumerate(fractions):
            share = (1 - CONSTANT_SHARE) * fraction
            step = _Round(problem, basis, mechanisms, mu * math.sqrt(share), f"{name}: round {number + 1}")
            belief = step.update(belief)
        return belief.model(basis)

    def _fractions(self, signal: float) -> np.ndarray:
        """Later rounds are worth more, above all when there are few."""
        rounds, rise = (5, 3.0) if signal < 4500 else (9, 1.5)
        growing = np.linspace(1.0, rise, self.rounds or rounds)
        return growing / growing.sum()


@dataclass(frozen=True)
class Basis:
    """χ at the rows, and which column each term belongs to (−1 for the constant)."""

    means: np.ndarray
    sds: np.ndarray
    polynomials: list[np.ndarray]
    terms: list[tuple[tuple[int, int], ...]]
    rows: np.ndarray
    mean_error: float

    def __repr__(self) -> str:
        return "<Basis: sealed>"

    @classmethod
    def of(cls, problem: Problem, signal: float, degree: int | None) -> "Basis":
        """Degree 4 and pairs for at most five columns; no pairs beyond, and degree 3 where the budget is thin."""
        columns = problem.columns
        width = len(columns.means)
        few = width <= 5
        degree = degree or (4 if few or signal > 600 * width else 3)
        polynomials = [column_polynomials(m, s, degree) for m, s in zip(columns.means, columns.sds, strict=True)]
        terms = basis_terms([len(matrix) - 1 for matrix in polynomials], 2 if few else 0)
        rows = evaluate_basis(problem.x, columns.means, columns.sds, polynomials, terms)
        error = columns.mean_error / float(columns.sds.mean())
        return cls(columns.means, columns.sds, polynomials, terms, rows, error)

    @property
    def column(self) -> np.ndarray:
        return np.array([term[0][0] if term else -1 for term in self.terms])

    def prior(self, constant: float, slope: float) -> np.ndarray:
        """Prior variances: degree k of a column k⁻³ of its line, products a quarter of that."""

        def variance(term: tuple[tuple[int, int], ...]) -> float:
            if not term:
                return constant
            size = math.prod(degree for _, degree in term) ** -3.0
            return slope**2 * size * (1.0 if len(term) == 1 else 0.25)

        return np.array([variance(term) for term in self.terms])


@dataclass(frozen=True)
class Belief:
    """What is believed about θ after some rounds: means, slab variances, and which columns matter."""

    theta: np.ndarray
    slab: np.ndarray
    start: np.ndarray
    matters: np.ndarray
    prior_matters: float
    precision: np.ndarray
    scale: float
    scale_doubt: float
    curvature: float
    effect_scale: float
    slope: float = 1.0
    slope_variance: float = SLOPE_PRIOR
    last: "Step | None" = field(default=None, repr=False)

    @classmethod
    def prior(cls, basis: Basis, problem: Problem, offset: Offset) -> "Belief":
        """Effects vary on the scale of the residuals; three columns matter, a priori."""
        width = len(basis.means)
        effect_scale = HETEROGENEITY * min(
            offset.score_scale / math.sqrt(problem.curvature * offset.curvature), problem.span
        )
        sampling = (offset.score_scale / offset.curvature) ** 2 / problem.n
        start = basis.prior(offset.sd**2 + sampling, effect_scale)
        theta = np.where(basis.column < 0, offset.value, 0.0)
        likely = min(0.5, COLUMNS_THAT_MATTER / width)
        return cls(
            theta=theta,
            slab=start,
            start=start,
            matters=np.full(width, likely),
            prior_matters=likely,
            precision=np.zeros(len(theta)),
            scale=offset.score_scale,
            scale_doubt=0.4,
            curvature=offset.curvature,
            effect_scale=effect_scale,
        )

    def inclusion(self, basis: Basis) -> np.ndarray:
        """The probability that each term matters; the constant always does."""
        return np.where(basis.column >= 0, self.matters[np.maximum(basis.column, 0)], 1.0)

    def model(self, basis: Basis) -> MomentsModel:
        """A column that is left out may still hide effects below the resolution reached, never more than its prior."""
        included = self.inclusion(basis)
        hidden = np.minimum(self.prior_matters * self.start, 1 / np.maximum(self.precision, 1e-12))
        variances = included * self.slab + (1 - included) * hidden
        return MomentsModel(
            means=basis.means.tolist(),
            sds=basis.sds.tolist(),
            polynomials=[matrix.tolist() for matrix in basis.polynomials],
            terms=[list(term) for term in basis.terms],
            coefficients=self.theta.tolist(),
            variances=variances.tolist(),
            truncation_variance=self._truncation(basis, variances),
        )

    def _truncation(self, basis: Basis, variances: np.ndarray) -> float:
        """Degrees beyond the basis: what the prior expects of them, or half of what the last degree shows if less."""
        total = 0.0
        for column, matrix in enumerate(basis.polynomials):
            top = len(matrix) - 1
            last = basis.terms.index(((column, top),))
            expected = self.matters[column] * self.effect_scale**2 / (2 * (top + 0.5) ** 2)
            total += min(expected, 0.5 * (self.theta[last] ** 2 + variances[last]))
        return float(total)


@dataclass(frozen=True)
class Step:
    """A round's released score, where it looked, its noise, and the move that followed."""

    score: np.ndarray
    direction: np.ndarray
    sd: float
    move: np.ndarray


@dataclass(frozen=True)
class _Round:
    problem: Problem
    basis: Basis
    mechanisms: Mechanisms
    mu: float
    name: str

    def update(self, belief: Belief) -> Belief:
        scores = self.problem.scores(self.basis.rows @ belief.theta)
        sizes = self._sizes(scores, belief)
        step = self._score(scores, sizes, belief)
        return _updated(belief, step, self.basis, self.problem.n, sizes)

    def _sizes(self, scores: np.ndarray, belief: Belief) -> ScoreSizes:
        """For an outcome of two values nothing is clipped and the scale is known; else it is counted."""
        if self.problem.two_valued:
            return ScoreSizes(belief.scale, belief.scale_doubt, self.problem.score_limit / 2)
        mu = self.mu * math.sqrt(SCALE_SHARE)
        prior = (math.log(belief.scale), belief.scale_doubt)
        return score_sizes(self.problem, self.mechanisms, scores, mu, f"{self.name}, score sizes", prior)

    def _score(self, scores: np.ndarray, sizes: ScoreSizes, belief: Belief) -> Step:
        """The clipped sum of scores along d∘χ, Σd² = 1: most noise where least is known and most can be."""
        spent = 0.0 if self.problem.two_valued else SCALE_SHARE
        n, mu = self.problem.n, self.mu * math.sqrt(1 - spent)
        error = belief.inclusion(self.basis) * belief.slab
        effective = error.sum() ** 2 / (error**2).sum()
        generous = math.sqrt(np.clip(math.sqrt(n * mu * mu / (4 * effective)), 1, 3))
        score_bound = min(max(1.5 * generous * sizes.scale, sizes.reach), self.problem.score_limit)
        norm_bound = 0.9 * generous * score_bound
        sensitivity = clipped_sum(
            norm_bound=norm_bound, neighbours=self.problem.neighbours, rows=self.problem.rows_per_person
        ).scaled(1 / n)
        weight = _water_filled(np.maximum(error, 1e-12), (belief.curvature * mu / sensitivity.value) ** 2)
        direction = np.sqrt(weight)
        rows = np.clip(scores, -score_bound, score_bound)[:, None] * (self.basis.rows * direction)
        norms = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        total = np.minimum(1.0, norm_bound / norms) @ rows
        noisy = self.mechanisms.vector(
            f"{self.name}, scores", total / n, sensitivity=sensitivity, mu=mu, part=self.problem.part
        )
        return Step(noisy.value, direction, noisy.sd, np.zeros_like(direction))


def _updated(belief: Belief, step: Step, basis: Basis, n: float, sizes: ScoreSizes) -> Belief:
    """One Kalman step per coefficient and one update of the evidence per column: post-processing."""
    slope, slope_variance = _slope(belief, step)
    d, known = step.direction, step.direction > 1e-9
    included = belief.inclusion(basis)
    error = included * belief.slab
    constant = basis.column < 0
    curvature = belief.curvature
    spread = error.sum() - error[constant].sum()
    model_noise = (
        UNCENTRED**2 * np.where(constant, 0.0, spread - error)
        + basis.mean_error**2 * np.where(constant, spread, error[constant].sum())
        + slope_variance * error
    )
    noise = step.sd**2 + d**2 * sizes.scale**2 / n + (curvature * d) ** 2 * model_noise
    response = curvature * d * min(slope, 1.0)
    gain = np.where(known, belief.slab * response / (belief.slab * response**2 + noise), 0.0)
    expected = belief.slab * response**2
    evidence = 0.5 * step.score**2 * (1 / noise - 1 / (noise + expected)) - 0.5 * np.log1p(expected / noise)
    matters = _reweighed(belief.matters, np.where(known, evidence, 0.0), basis.column)
    after = np.where(basis.column >= 0, matters[np.maximum(basis.column, 0)], 1.0)
    move = gain * step.score / max(slope, 1.0)
    slab = belief.slab * (1 - gain * response / max(slope, 1.0)) + (1 - after) * move**2
    return dataclasses.replace(
        belief,
        theta=belief.theta + after * move,
        slab=np.minimum(slab, belief.start),
        matters=matters,
        precision=belief.precision + response**2 / noise,
        scale=sizes.scale,
        scale_doubt=math.hypot(sizes.doubt, 0.25),
        slope=slope,
        slope_variance=slope_variance,
        last=dataclasses.replace(step, move=after * move),
    )


def _slope(belief: Belief, step: Step) -> tuple[float, float]:
    """How much the scores fell along the last move, over how much they should have, shrunk to its prior."""
    if belief.last is None:
        return belief.slope, belief.slope_variance
    last, both = belief.last, (step.direction > 1e-9) & (belief.last.direction > 1e-9)
    move = last.move[both]
    expected = belief.curvature * float(move @ move)
    if expected < 1e-12:
        return belief.slope, belief.slope_variance
    before, now = last.score[both] / last.direction[both], step.score[both] / step.direction[both]
    seen = float((before - now) @ move) / expected
    noise = (step.sd / step.direction[both]) ** 2 + (last.sd / last.direction[both]) ** 2
    variance, prior = float(noise @ move**2) / expected**2, belief.slope_variance + SLOPE_DRIFT
    slope = belief.slope + (seen - belief.slope) * prior / (prior + variance)
    return max(0.3, slope), prior * variance / (prior + variance)


def _reweighed(matters: np.ndarray, evidence: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Prior odds times Bayes factors, column by column."""
    total = np.zeros(len(matters))
    np.add.at(total, column[column >= 0], evidence[column >= 0])
    log_odds = np.clip(np.log(matters / (1 - matters)) + total, -12, 12)
    return np.clip(1 / (1 + np.exp(-log_odds)), 1e-3, 1 - 1e-3)


def _water_filled(error: np.ndarray, capacity: float) -> np.ndarray:
    """argmin over w ≥ 0, Σw = 1, of Σ 1/(1/errorⱼ + capacity·wⱼ)."""
    inverse, ordered = 1 / error, np.sort(1 / error)
    level = (capacity + np.cumsum(ordered)) / np.arange(1, len(error) + 1)
    reached = level[np.max(np.nonzero(level > ordered)[0])]
    weight = np.maximum(reached - inverse, 0.0)
    return weight / weight.sum()
