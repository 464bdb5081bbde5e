"""Theorem 1 as printed: finitely many effects with noise scaled by the data-dependent γ. Unproven.

The smoothness that the theorem's proof needs does not hold: on Dataset 1 a claimed (1, 1e-5) is really distinguishable
far beyond it (tests/paper/test_counterexample.py). γ and the noise scale are functions of the rows and stay here.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcate.errors import InputError
from dpcate.models.points import PointsModel
from dpcate.paper.formulas import theorem_1_factor
from dpcate.paper.gross_error import Score, certified_bound, gross_error_sensitivity
from dpcate.paper.kernel_ridge import KernelRidge
from dpcate.paper.network import SmoothNetwork, require_jax
from dpcate.privacy import Declared, Mechanisms
from dpcate.regress import Problem


@dataclass(frozen=True, repr=False)
class CuratorNotes:
    """Numbers that depend on rows, for the curator's own screen."""

    gross_error_sensitivity: float
    certified_bound: float | None

    def __repr__(self) -> str:
        return "<CuratorNotes: sealed>"

    def show(self) -> str:
        bound = "none is known" if self.certified_bound is None else f"{self.certified_bound:.4g}"
        return (
            "NOT FOR SHARING (depends on rows): gross-error sensitivity found "
            f"{self.gross_error_sensitivity:.4g}, certified upper bound {bound}"
        )


class PaperStage(Protocol):
    name: str

    def fit(self, problem: Problem) -> KernelRidge | SmoothNetwork: ...


@dataclass(frozen=True, kw_only=True)
class PaperKernel:
    """Kernel ridge regression at scikit-learn's defaults, as in the paper: h = √(q/2) and λ = 1/n."""

    bandwidth: float | None = None
    penalty: float | None = None
    name = "kernel"

    def fit(self, problem: Problem) -> KernelRidge:
        return KernelRidge.fit(
            problem.x,
            problem.rho,
            problem.rho_phi,
            bandwidth=self.bandwidth or math.sqrt(problem.x.shape[1] / 2),
            penalty=self.penalty or 1 / problem.n,
            n=problem.n,
        )


@dataclass(frozen=True, kw_only=True)
class PaperNetwork:
    """Two hidden layers of 32, tanh, with a damped Hessian."""

    hidden: tuple[int, ...] = (32, 32)
    penalty: float = 1e-3
    damping: float = 1e-2
    name = "network"

    def __post_init__(self) -> None:
        require_jax()

    def fit(self, problem: Problem) -> SmoothNetwork:
        return SmoothNetwork.fit(
            problem.x,
            problem.rho,
            problem.rho_phi,
            n=problem.n,
            hidden=self.hidden,
            penalty=self.penalty,
            damping=self.damping,
        )


def paper_queries(
    stage: PaperStage,
    problem: Problem,
    queries: np.ndarray | None,
    score: Score,
    outcome_range: tuple[float, float],
    limits: tuple[float, float],
    mechanisms: Mechanisms,
    *,
    epsilon: float,
    delta: float,
) -> tuple[PointsModel, CuratorNotes]:
    """ĝ(x) + γ·c(ε, δ, n)·N(0, I) at the declared points, charged as the (ε/2, δ/2) that the paper claims.

    `limits` are the largest ρ and |ρφ| that any row of the schema can have.
    """
    if queries is None:
        raise InputError("calibration='paper' with this second stage needs queries=..., a finite set of points")
    fitted = stage.fit(problem)
    gamma = gross_error_sensitivity(fitted, queries, score, outcome_range)
    noisy = mechanisms.unproven(
        f"effect: paper's Theorem 1, {stage.name}",
        fitted.value(queries),
        sd=gamma * theorem_1_factor(epsilon, delta, problem.n),
        claim=Declared(epsilon / 2, delta / 2),
        part=problem.part,
    )
    model = PointsModel(points=queries.tolist(), values=noisy.tolist(), sds=None)
    return model, CuratorNotes(gamma, _upper_bound(fitted, queries, limits))


def _upper_bound(fitted: KernelRidge | SmoothNetwork, queries: np.ndarray, limits: tuple[float, float]) -> float | None:
    """What γ cannot exceed, for kernel ridge regression; no such bound is known for a network."""
    if not isinstance(fitted, KernelRidge):
        return None
    return certified_bound(
        queries=queries,
        bandwidth=fitted.bandwidth,
        penalty=fitted.penalty,
        norm=fitted.norm(),
        largest_rho=limits[0],
        largest_rho_phi=limits[1],
    )
