"""A function on the unit box as a constant plus an interpolant of released values at public points.

    g(x) = offset + k(x, P)(K_PP + τI)⁻¹ y,   y = the private function at the points P.
Interpolating released numbers is post-processing. It is the mean of the whole path given its values at P.
"""

import math

import msgspec
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpcate.errors import InputError, ReleaseError
from dpcate.models.kernels import gram, require_kernel

JITTER = 1e-9  # the released values carry independent noise of this variance per unit of noise_sd²
CHUNK = 4096  # rows of x that are worked on at a time


class KernelModel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="kernel"
):
    """Released numbers: a constant, values at public points, and what intervals need.

    The errors of g(x), with the interpolation weights w(x) = (K_PP + τI)⁻¹k(P, x) and s(x) = k(x, P)w(x) ≤ 1:
    - privacy noise, exact: w'u for a path u of covariance noise_sd²(k + τ) has variance noise_sd²·s(x);
    - sampling noise: w'ĝ(P) is a functional of ĝ of squared norm at most s(x), each of which has a sampling sd
      of at most `sampling_sd` per unit of norm, so sampling_sd²·s(x);
    - shrinkage and interpolation: for a true function of law GP(0, prior_sd²k) and rows that are spread like
      N public points Q with curvature c, the noise-free fit at P is S f(Q), S = K_PQ (K_QQ + (λN/c)I)⁻¹, so
      f(x) − w'S f(Q) has variance prior_sd²(1 − 2b'k(Q, x) + b'K_QQ b) with b = S'w.
    """

    offset: float
    offset_sd: float
    kernel: str
    bandwidth: float
    points: list[list[float]]
    values: list[float]
    noise_sd: float
    sampling_sd: float
    prior_sd: float
    curvature: float
    penalty: float

    def __post_init__(self) -> None:
        spreads = [self.offset_sd, self.noise_sd, self.sampling_sd, self.prior_sd, self.curvature]
        numbers = [self.offset, self.penalty, *spreads, *self.values, *(entry for p in self.points for entry in p)]
        if not all(math.isfinite(number) for number in numbers):
            raise ReleaseError("a model must consist of finite numbers")
        if min(spreads) < 0 or self.penalty <= 0:
            raise ReleaseError("standard deviations must not be negative, and the penalty must be positive")
        widths = {len(point) for point in self.points}
        if len(widths) != 1 or 0 in widths or len(self.values) != len(self.points):
            raise ReleaseError("points and values do not fit each other")
        try:
            require_kernel(self.kernel, self.bandwidth)
        except InputError as error:
            raise ReleaseError(str(error)) from None

    @property
    def width(self) -> int:
        return len(self.points[0])

    @property
    def privacy_sd(self) -> float:
        """The privacy noise of the path at any point; between the points P the interpolant has less."""
        return math.hypot(self.noise_sd, self.offset_sd)

    def value(self, x: np.ndarray) -> np.ndarray:
        """offset + k(x, P)(K_PP + τI)⁻¹ y."""
        points = np.asarray(self.points)
        weights = _solve(self.gram(points, points), JITTER, np.asarray(self.values))
        return self.offset + _by_chunks(lambda part: self.gram(part, points) @ weights, x)

    def sd(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The sd of the error in g(x); `reference` are public points of the schema's box."""
        points = np.asarray(self.points)
        among = self.gram(points, points)
        design, smoother = self.gram(reference, reference), self.smoother(reference)

        def variance(part: np.ndarray) -> np.ndarray:
            here = self.gram(part, points)
            weights = _solve(among, JITTER, here.T).T
            b = weights @ smoother
            kept = np.clip((weights * here).sum(axis=1), 0.0, 1.0)
            lost = 1 + (b * (b @ design - 2 * self.gram(part, reference))).sum(axis=1)
            noise = self.noise_sd**2 + self.sampling_sd**2
            return self.offset_sd**2 + noise * kept + self.prior_sd**2 * np.maximum(lost, 0.0)

        return np.sqrt(_by_chunks(variance, x))

    def smoother(self, reference: np.ndarray) -> np.ndarray:
        """S = K_PQ (K_QQ + (λN/c)I)⁻¹: what the penalised fit at P makes of a function's values at Q."""
        ridge = self.penalty * len(reference) / max(self.curvature, 1e-12)
        across = self.gram(reference, np.asarray(self.points))
        return _solve(self.gram(reference, reference), ridge, across).T

    def gram(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return gram(self.kernel, self.bandwidth, A, B)


def _solve(matrix: np.ndarray, ridge: float, right: np.ndarray) -> np.ndarray:
    """(matrix + ridge·I)⁻¹ right."""
    return cho_solve(cho_factor(matrix + ridge * np.eye(len(matrix))), right)


def _by_chunks(function, x: np.ndarray) -> np.ndarray:
    parts = [function(x[start : start + CHUNK]) for start in range(0, len(x), CHUNK)]
    return np.concatenate(parts) if parts else np.empty(0)
