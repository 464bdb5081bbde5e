"""Theorem 3 as printed: the whole function on random features, with the printed noise scale. Unproven.

A squared loss is not Lipschitz, whatever "the bound of the domain" is, and the exponent of the kernel's height is
wrong: the noise is too small for wide kernels and far too large for narrow ones.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcate.models.fourier import FourierModel, fourier_features, frequencies
from dpcate.paper.formulas import kernel_diagonal, theorem_3_scale_printed
from dpcate.privacy import Declared, Mechanisms
from dpcate.regress import Problem


@dataclass(frozen=True, kw_only=True)
class PaperFeatures:
    """m = 50 basis functions and λ = 1, as in the paper; L is the width of the outcome's range."""

    pairs: int = 25
    bandwidth: float = 0.2
    penalty: float = 1.0
    name = "features"


def paper_function(
    stage: PaperFeatures, problem: Problem, mechanisms: Mechanisms, *, epsilon: float, delta: float
) -> FourierModel:
    """Ridge regression in the paper's kernel K, written for k = K/K(x,x) with penalty λ/K(x,x), plus printed noise."""
    width = problem.x.shape[1]
    diagonal = kernel_diagonal(stage.bandwidth, width)
    omega = frequencies(stage.pairs, width, stage.bandwidth)
    phi = fourier_features(problem.x, omega)
    penalty = stage.penalty / diagonal
    system = (phi.T * problem.rho) @ phi / problem.n + penalty * np.eye(phi.shape[1])
    theta = np.linalg.solve(system, phi.T @ problem.rho_phi / problem.n)
    printed = theorem_3_scale_printed(
        slope=problem.span,
        weight=1.0,
        bandwidth=stage.bandwidth,
        width=width,
        penalty=stage.penalty,
        n=problem.n,
        epsilon=epsilon,
        delta=delta,
    )
    sd = printed * math.sqrt(diagonal)
    noisy = mechanisms.unproven(
        "effect: paper's Theorem 3", theta, sd=sd, claim=Declared(epsilon / 2, delta / 2), part=problem.part
    )
    return FourierModel(
        offset=0.0,
        offset_sd=0.0,
        frequencies=omega.tolist(),
        coefficients=noisy.tolist(),
        coefficient_sd=sd,
        sampling_sd=0.0,
        prior_sd=0.0,
        curvature=problem.curvature,
        penalty=penalty,
    )
