"""M1: Huber regression on unit-norm Fourier features, released once with Gaussian noise on its coefficients.

The paper's functional release (Theorem 3) in a finite-dimensional space, with the exact sensitivity of
THEORY section 4: Δ = 2B/(λn) and noise sd Δ/μ on every coefficient. Since ‖φ(x)‖ = 1, that is also the sd
of the privacy noise in g(x), at every x. The release is the complete function: unlimited queries, no state.
How the defaults were chosen is written in docs/defaults.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.errors import InputError
from dpcate.models import FourierModel
from dpcate.models.fourier import fourier_features, frequencies, shrinkage_spectrum
from dpcate.privacy import Mechanisms, Noisy, Shares
from dpcate.privacy.sensitivity import box_sum
from dpcate.privacy.sensitivity import huber_minimiser as huber_sensitivity
from dpcate.regress.huber import huber_minimiser
from dpcate.regress.offset import Offset, private_offset
from dpcate.regress.problem import Problem

GRADIENT_TOLERANCE = 1e-4  # of one row's largest gradient: the solver's part of the sensitivity


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The constants of the default rule; bench/tuning.py compares them with their neighbours."""

    bandwidth: float = 0.2  # h per root of the number of columns: distances in the unit box grow like √q
    threshold: float = 1.2  # B in units of the private scale of the scores
    penalty: float = 15.0  # λ = 15·(B/S)·(nμ)^(−3/4), S the plausible range of the effect


@dataclass(frozen=True, kw_only=True)
class Features:
    """Settings of M1; what is None follows from the rule."""

    pairs: int | None = None
    bandwidth: float | None = None
    penalty: float | None = None
    threshold: float | None = None  # B as a fraction of the score limit
    rule: Rule = Rule()

    name = "features"

    def __post_init__(self) -> None:
        if self.pairs is not None and (not isinstance(self.pairs, int) or not 1 <= self.pairs <= 1 << 14):
            raise InputError("pairs must be a whole number from 1 to 16384")
        for name in ("bandwidth", "penalty", "threshold"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a positive number, or None for the default rule")

    def fit(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> FourierModel:
        """The private function, spending μ in all; `interval` also pays for its sampling noise."""
        shares = budget_shares(problem.signal(mu), interval)
        offset = private_offset(problem, mechanisms, shares.mu("offset", mu), name)
        bound, plausible, penalty = calibrate(
            problem, offset, shares.mu("coefficients", mu), self.rule, self.threshold, self.penalty
        )
        omega = frequencies(self._pairs(problem), problem.x.shape[1], self._bandwidth(problem))
        phi = fourier_features(problem.x, omega)
        psi = problem.scores(offset.value)

        tolerance = GRADIENT_TOLERANCE * 2 * bound / problem.n
        theta = huber_minimiser(
            phi, problem.rho, psi, n=problem.n, score_bound=bound, penalty=penalty, tolerance=tolerance
        )
        sensitivity = huber_sensitivity(
            score_bound=bound,
            penalty=penalty,
            n=problem.n,
            neighbours=problem.neighbours,
            gradient_norm=tolerance,
            rows=problem.rows_per_person,
        )
        noisy = mechanisms.vector(
            f"{name}: coefficients",
            theta,
            sensitivity=sensitivity,
            mu=shares.mu("coefficients", mu),
            part=problem.part,
        )
        curvature, sampling_sd = offset.curvature, 0.0
        if interval:
            scores = psi - problem.rho * (phi @ noisy.value)
            variance, curvature = score_moments(problem, mechanisms, scores, bound, shares.mu("interval", mu), name)
            sampling_sd = math.sqrt(variance / (4 * curvature * penalty * problem.n))
        return FourierModel(
            offset=offset.value,
            offset_sd=offset.sd,
            frequencies=omega.tolist(),
            coefficients=noisy.value.tolist(),
            coefficient_sd=noisy.sd,
            sampling_sd=sampling_sd,
            prior_sd=_prior_sd(noisy, omega, problem.reference, curvature, penalty, plausible),
            curvature=curvature,
            penalty=penalty,
        )

    def _pairs(self, problem: Problem) -> int:
        """64 pairs for one or two columns, 128 up to five, 256 beyond."""
        width = problem.x.shape[1]
        return self.pairs or (64 if width <= 2 else 128 if width <= 5 else 256)

    def _bandwidth(self, problem: Problem) -> float:
        return self.bandwidth or self.rule.bandwidth * math.sqrt(problem.x.shape[1])


def calibrate(
    problem: Problem, offset: Offset, mu: float, rule: Rule, threshold: float | None, penalty: float | None
) -> tuple[float, float, float]:
    """The score bound B, the plausible range S of the effect, and the penalty λ.

    B is the private scale of the scores; S is the declared span, or four score scales over ρ if less.
    An outcome of two values is not clipped: its residuals are not small errors around a mean.
    """
    limit = problem.score_limit
    if threshold is not None:
        bound = threshold * limit
    else:
        bound = limit / 2 if problem.two_valued else min(rule.threshold * offset.score_scale, limit)
    plausible = min(problem.span, 4 * offset.score_scale / problem.curvature)
    return bound, plausible, penalty or rule.penalty * bound / plausible * problem.signal(mu) ** -0.75


def budget_shares(signal: float, interval: bool) -> Shares:
    """The constant matters most at small budgets: its share is 20/(nμ), between a tenth and a half."""
    offset = float(np.clip(20 / signal, 0.1, 0.5))
    rest = {"interval": 0.04} if interval else {}
    return Shares({"offset": offset, **rest, "coefficients": 1 - offset - sum(rest.values())})


def score_moments(
    problem: Problem, mechanisms: Mechanisms, scores: np.ndarray, bound: float, mu: float, name: str
) -> tuple[float, float]:
    """The variance v of the clipped scores and the mean ρ, r, of the rows that are not clipped.

    They bound the sampling sd of φ(x)'θ by √(v / (4rλn)), whatever the design: the covariance of θ is
    A⁻¹SA⁻¹/n with A = E[ρφφ'] + λI and S = E[score²φφ'] ≼ (v/r)(A − λI), and 1/a − λ/a² ≤ 1/(4λ).
    """
    ceiling = 2 * problem.curvature
    inside = np.abs(scores) <= bound
    statistic = np.column_stack(
        [
            (np.clip(scores, -bound, bound) / bound) ** 2,
            np.where(inside, np.minimum(problem.rho, ceiling) / ceiling, 0.0),
        ]
    )
    released = mechanisms.vector(
        f"{name}: score variance and curvature",
        statistic.sum(axis=0) / problem.n,
        sensitivity=box_sum(widths=(1.0, 1.0), rows=problem.rows_per_person).scaled(1 / problem.n),
        mu=mu,
        part=problem.part,
    )
    variance, curvature = np.clip(released.value + released.sd * np.array([1.0, -1.0]), 0.02, 1.0)
    return bound**2 * float(variance), ceiling * float(curvature)


def _prior_sd(
    noisy: Noisy, omega: np.ndarray, reference: np.ndarray, curvature: float, penalty: float, plausible: float
) -> float:
    """How large the coefficients are before shrinkage, by moments: E‖θ̃‖² = s²·Σ(1 − taken)² + noise.

    Kept between 5% and 25% of the plausible range, so that a noisy release still claims an honest width.
    """
    _, taken = shrinkage_spectrum(omega, reference, curvature, penalty)
    excess = float(noisy.value @ noisy.value) - noisy.value.size * noisy.sd**2
    estimate = math.sqrt(max(excess, 0.0) / float(((1 - taken) ** 2).sum()))
    return float(np.clip(estimate, 0.05 * plausible, 0.25 * plausible))
