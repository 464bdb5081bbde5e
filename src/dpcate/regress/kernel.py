"""M2: kernel regression in its whole function space, released once with the noise of a Gaussian process.

The paper's functional release (Theorem 3, Algorithms 1 and 2) with the exact sensitivities of THEORY section 4.
The fit minimises  (1/n) Σ ℓᵢ(g(xᵢ)) + λ‖g‖²  over the space H of a unit-diagonal kernel, so g = Σ αᵢ k(xᵢ, ·); the
release is g + r·U with one path U of covariance k and r = Δ/μ, Δ the sensitivity of g in the norm of H.
Evaluating g needs the rows: the curator keeps a `KernelOracle`, the release holds its values at public points.
"""

import math
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpcate.errors import InputError
from dpcate.models.kernel import KernelModel
from dpcate.models.kernels import gram, require_kernel
from dpcate.privacy import Mechanisms, Sensitivity
from dpcate.privacy.path import NoisePath
from dpcate.privacy.sensitivity import huber_minimiser as huber_sensitivity
from dpcate.privacy.sensitivity import ridge_minimiser as ridge_sensitivity
from dpcate.regress.features import GRADIENT_TOLERANCE, Rule, budget_shares, calibrate, score_moments
from dpcate.regress.huber import huber_coefficients
from dpcate.regress.offset import Offset, private_offset
from dpcate.regress.oracle import KernelOracle, expansion
from dpcate.regress.problem import Problem

MOST_ROWS = 6000  # the Gram matrix and its factor take 16 n² bytes, and the fit n³ operations
JITTER = 1e-9
DESIGN_CEILING = 2.0  # W² of the squared loss, in units of a typical row's ρ
LOSSES = ("huber", "ridge")


@dataclass(frozen=True)
class Fitted:
    """g = Σ αᵢ k(xᵢ, ·), and how far one person can move it in H."""

    kernel: "partial[np.ndarray]"
    rows: np.ndarray
    dual: np.ndarray
    sensitivity: Sensitivity

    def __repr__(self) -> str:
        return "<Fitted: sealed>"


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Settings of M2; what is None follows from the rule of the features release."""

    kind: str = "gaussian"
    bandwidth: float | None = None
    penalty: float | None = None
    threshold: float | None = None  # B as a fraction of the score limit
    loss: str = "huber"
    points: int = 256  # how many public points the release holds
    rule: Rule = Rule()  # noqa: RUF009 (frozen)

    name = "kernel"

    def __post_init__(self) -> None:
        require_kernel(self.kind, 1.0 if self.bandwidth is None else self.bandwidth)
        if self.loss not in LOSSES:
            raise InputError(f"loss must be one of {', '.join(LOSSES)}")
        if isinstance(self.points, bool) or not isinstance(self.points, int) or not 1 <= self.points <= 1024:
            raise InputError("points must be a whole number from 1 to 1024")
        for name in ("penalty", "threshold"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a positive number, or None for the default rule")

    def fit(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> KernelModel:
        """The private function at public points, spending μ in all; `interval` also pays for its sampling noise."""
        return self.fit_oracle(problem, mechanisms, mu, name, interval=interval).model

    def fit_oracle(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> KernelOracle:
        """The private function itself, on the curator's side; its `model` is what `fit` returns."""
        self._require_fitting(problem)
        shares = budget_shares(problem.signal(mu), interval)
        share = shares.mu("coefficients", mu)
        offset = private_offset(problem, mechanisms, shares.mu("offset", mu), name)
        bound, plausible, penalty = calibrate(problem, offset, share, self.rule, self.threshold, self.penalty)
        penalty = max(penalty, self._least_penalty(problem))
        fitted = self.regression(problem, offset.value, bound, penalty)
        path = mechanisms.path(
            f"{name}: function", fitted.kernel, sensitivity=fitted.sensitivity, mu=share, part=problem.part
        )
        model = self._published(problem, offset, fitted, path, penalty)
        if interval:
            scores = problem.scores(model.value(problem.x))
            variance, curvature = score_moments(problem, mechanisms, scores, bound, shares.mu("interval", mu), name)
            sampling_sd = math.sqrt(variance / (4 * curvature * penalty * problem.n))
            model = msgspec.structs.replace(model, sampling_sd=sampling_sd, curvature=curvature)
        model = msgspec.structs.replace(model, prior_sd=prior_sd(model, problem.reference, plausible))
        return KernelOracle(model=model, rows=fitted.rows, dual=fitted.dual, path=path, private=mechanisms.private)

    def regression(self, problem: Problem, offset: float, bound: float, penalty: float) -> Fitted:
        """The minimiser before any noise; its sensitivity holds for every offset, bound and penalty."""
        kernel = partial(gram, self.kind, self.bandwidth or self.rule.bandwidth * math.sqrt(problem.x.shape[1]))
        return {"huber": _huber, "ridge": _ridge}[self.loss](kernel, problem, offset, bound, penalty)

    def _published(
        self, problem: Problem, offset: Offset, fitted: Fitted, path: NoisePath, penalty: float
    ) -> KernelModel:
        """The noisy function at public points; what intervals need comes later."""
        points = np.unique(problem.reference[: self.points], axis=0)
        return KernelModel(
            offset=offset.value,
            offset_sd=offset.sd,
            kernel=self.kind,
            bandwidth=fitted.kernel.args[1],
            points=points.tolist(),
            values=(expansion(fitted.kernel, fitted.rows, fitted.dual, points) + path.at(points)).tolist(),
            noise_sd=path.sd,
            sampling_sd=0.0,
            prior_sd=0.0,
            curvature=offset.curvature,
            penalty=penalty,
        )

    def _require_fitting(self, problem: Problem) -> None:
        """By public numbers, before anything is spent."""
        if problem.n * problem.rows_per_person > MOST_ROWS:
            raise InputError(f"the exact kernel takes at most {MOST_ROWS} rows; use second_stage='features' for more")
        if self.penalty is not None and self.penalty < self._least_penalty(problem):
            raise InputError(
                f"the squared loss needs a penalty of at least {self._least_penalty(problem):.3g} here; "
                "raise the penalty or use loss='huber'"
            )

    def _least_penalty(self, problem: Problem) -> float:
        """The ridge bound is proven for λn ≥ W²."""
        return DESIGN_CEILING * problem.curvature / problem.n * (1 + 1e-9) if self.loss == "ridge" else 0.0


def _huber(kernel: "partial[np.ndarray]", problem: Problem, offset: float, bound: float, penalty: float) -> Fitted:
    """argmin (1/n) Σ ℓᵢ(⟨φᵢ, θ⟩) + λ‖θ‖²,  ℓ' = 2·clip(ρg − ψ, ±B).

    Each row has a coordinate of its own beside H: φᵢ = (k(xᵢ, ·), √τ·eᵢ)/√(1 + τ), of norm one. Their inner
    products are (K + τI)/(1 + τ), and the part of θ = Σ βᵢφᵢ in H is g = Σ αᵢ k(xᵢ, ·), α = β/√(1 + τ).
    Leaving the other part out cannot lengthen a difference, so the sensitivity is that of θ, exactly.
    """
    psi = problem.scores(offset)
    used = (problem.rho != 0) | (psi != 0)
    rows = problem.x[used]
    products = kernel(rows, rows)
    products[np.diag_indices_from(products)] += JITTER
    products /= 1 + JITTER
    sizes = {"n": problem.n, "score_bound": bound, "penalty": penalty}
    tolerance = GRADIENT_TOLERANCE * 2 * bound / problem.n
    beta = huber_coefficients(products, problem.rho[used], psi[used], tolerance=tolerance, **sizes)
    sensitivity = huber_sensitivity(
        neighbours=problem.neighbours, gradient_norm=tolerance, rows=problem.rows_per_person, **sizes
    )
    return Fitted(kernel, rows, beta / math.sqrt(1 + JITTER), sensitivity)


def _ridge(kernel: "partial[np.ndarray]", problem: Problem, offset: float, bound: float, penalty: float) -> Fitted:
    """argmin (1/n) Σ (tᵢ − wᵢg(xᵢ))² + λ‖g‖²:  α = w∘β,  (wKw + λnI)β = t.

    w = √ρ and t = ψ/w, both scaled down where w exceeds W; t is clipped to ±B/√(typical ρ), and rows without
    weight are absent. The bound needs a number m of at least as many rows as there are. Under replace-one that is
    k·⌈n⌉. Under add-or-remove-one n is a noisy count: the first ⌊kn⌋ rows are kept, so that a row which joins may
    push another out, and the bound is the one for replacing.
    """
    replace = problem.neighbours == "replace-one"
    most = problem.rows_per_person * (math.ceil(problem.n) if replace else problem.n)
    most = max(2, math.floor(most))
    used = np.flatnonzero(problem.rho > 0)[:most]
    design_bound = math.sqrt(DESIGN_CEILING * problem.curvature)
    target_bound = bound / math.sqrt(problem.curvature)
    root = np.sqrt(problem.rho[used])
    w = np.minimum(root, design_bound)
    t = np.clip(problem.scores(offset)[used] / root * (w / root), -target_bound, target_bound)
    rows = problem.x[used]
    normal = w[:, None] * kernel(rows, rows) * w + penalty * problem.n * np.eye(len(rows))
    sensitivity = ridge_sensitivity(
        design_bound=design_bound,
        target_bound=target_bound,
        penalty=penalty * problem.n / most,
        n=most,
        neighbours="replace-one",
        rows=problem.rows_per_person,
    )
    return Fitted(kernel, rows, w * cho_solve(cho_factor(normal), t), sensitivity)


def prior_sd(model: KernelModel, reference: np.ndarray, plausible: float) -> float:
    """How large the function is before shrinkage, by moments: E mean y² = s²·mean diag(S K_QQ S') + r².

    Kept between 5% and 25% of the plausible range, so that a noisy release still claims an honest width.
    """
    smoother = model.smoother(reference)
    kept = float((smoother @ model.gram(reference, reference) * smoother).sum(axis=1).mean())
    excess = float(np.mean(np.square(model.values))) - model.noise_sd**2
    return float(np.clip(math.sqrt(max(excess, 0.0) / kept), 0.05 * plausible, 0.25 * plausible))
