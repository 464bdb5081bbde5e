"""A function on the unit box as a constant plus Fourier features of norm exactly one.

    φ(x) = D^(−1/2) · (cos ω₁'x, …, cos ω_D'x, sin ω₁'x, …, sin ω_D'x),   ‖φ(x)‖² = (1/D) Σ (cos² + sin²) = 1,
    g(x) = offset + φ(x)'θ.
With frequencies ω spread like N(0, h⁻²I), φ(x)'φ(z) is close to the Gaussian kernel of bandwidth h, but
nothing about privacy rests on that closeness.
"""

import math

import msgspec
import numpy as np
from scipy.stats import norm, qmc

from dpcate.errors import ReleaseError


def frequencies(pairs: int, width: int, bandwidth: float) -> np.ndarray:
    """`pairs` public frequencies: a low-discrepancy sample of N(0, h⁻²I), the same for everybody."""
    enough = math.ceil(math.log2(pairs))
    uniform = qmc.Sobol(width, scramble=True, rng=np.random.default_rng(0)).random_base2(enough)[:pairs]
    return norm.ppf(np.clip(uniform, 1e-6, 1 - 1e-6)) / bandwidth


def fourier_features(x: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """φ(x), one row per point, each of norm one."""
    angles = x @ frequencies.T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(len(frequencies))


def shrinkage_spectrum(
    frequencies: np.ndarray, reference: np.ndarray, curvature: float, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors of M = E[φφ'] over public points, and the part λ/(rm + λ) that a penalty takes from each."""
    phi = fourier_features(reference, frequencies)
    moments, vectors = np.linalg.eigh(phi.T @ phi / len(phi))
    return vectors, penalty / (curvature * np.maximum(moments, 0.0) + penalty)


class FourierModel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="features"
):
    """Released numbers: a constant, coefficients, and what intervals need.

    Three errors are told apart: privacy noise, whose sd is exact; sampling noise, bounded by
    `sampling_sd`; and shrinkage by the penalty, for coefficients of prior sd `prior_sd`, rows spread like
    the public reference points and curvature `curvature`.
    """

    offset: float
    offset_sd: float
    frequencies: list[list[float]]
    coefficients: list[float]
    coefficient_sd: float
    sampling_sd: float
    prior_sd: float
    curvature: float
    penalty: float

    def __post_init__(self) -> None:
        spreads = [self.offset_sd, self.coefficient_sd, self.sampling_sd, self.prior_sd, self.curvature]
        numbers = [self.offset, self.penalty, *spreads, *self.coefficients]
        numbers += [entry for frequency in self.frequencies for entry in frequency]
        if not all(math.isfinite(number) for number in numbers):
            raise ReleaseError("a model must consist of finite numbers")
        if min(spreads) < 0 or self.penalty <= 0:
            raise ReleaseError("standard deviations must not be negative, and the penalty must be positive")
        widths = {len(frequency) for frequency in self.frequencies}
        if len(widths) != 1 or 0 in widths or len(self.coefficients) != 2 * len(self.frequencies):
            raise ReleaseError("frequencies and coefficients do not fit each other")

    @property
    def width(self) -> int:
        return len(self.frequencies[0])

    @property
    def privacy_sd(self) -> float:
        """The privacy noise in g(x), the same at every x since ‖φ(x)‖ = 1."""
        return math.hypot(self.coefficient_sd, self.offset_sd)

    def value(self, x: np.ndarray) -> np.ndarray:
        """offset + φ(x)'θ."""
        return self.offset + fourier_features(x, np.asarray(self.frequencies)) @ np.asarray(self.coefficients)

    def sd(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The sd of the error in g(x); `reference` are public points of the schema's box."""
        omega = np.asarray(self.frequencies)
        vectors, taken = shrinkage_spectrum(omega, reference, self.curvature, self.penalty)
        shrunk = self.prior_sd * np.linalg.norm(fourier_features(x, omega) @ (vectors * taken), axis=1)
        return np.sqrt(shrunk**2 + self.privacy_sd**2 + self.sampling_sd**2)
