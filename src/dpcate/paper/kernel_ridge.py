"""Corollary 2: weighted kernel ridge regression and its influence function.

ĝ = argmin (1/n) Σ ρᵢ(φᵢ − g(xᵢ))² + λ‖g‖²_H. With A f = (1/n) Σ ρᵢ f(xᵢ) k(xᵢ, ·) + λf, the influence of a row z is
    IF(z) = A⁻¹[(ρφ − ρĝ(x)) k(x, ·) − λĝ];
the last term, the penalty's own, is missing in the paper and is kept here apart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from dpcate.models.kernels import gram


@dataclass(frozen=True)
class KernelRidge:
    """A fitted kernel ridge regression; holds training rows, so it stays on the curator's side."""

    x: np.ndarray
    rho: np.ndarray
    dual: np.ndarray
    factor: tuple[np.ndarray, np.ndarray]
    bandwidth: float
    penalty: float

    def __repr__(self) -> str:
        return "<KernelRidge: sealed>"

    @classmethod
    def fit(
        cls, x: np.ndarray, rho: np.ndarray, rho_phi: np.ndarray, *, bandwidth: float, penalty: float, n: float
    ) -> "KernelRidge":
        """Solve (nλI + ρK)β = ρφ, so that ĝ = Σ βᵢ k(xᵢ, ·); nothing is divided by ρ."""
        system = rho[:, None] * gram("gaussian", bandwidth, x, x)
        system[np.diag_indices_from(system)] += n * penalty
        factor = lu_factor(system)
        return cls(x, rho, lu_solve(factor, rho_phi), factor, bandwidth, penalty)

    def value(self, points: np.ndarray) -> np.ndarray:
        return self._k(points, self.x) @ self.dual

    def norm(self) -> float:
        """‖ĝ‖_H."""
        return float(np.sqrt(max(self.dual @ self._k(self.x, self.x) @ self.dual, 0.0)))

    def inverse_at(self, queries: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(A⁻¹k(z, ·))(queries), one column per row of z: the paper's h."""
        pulled = lu_solve(self.factor, self.rho[:, None] * self._k(self.x, z))
        return (self._k(queries, z) - self._k(queries, self.x) @ pulled) / self.penalty

    def influence(self, queries: np.ndarray, z: np.ndarray, rho: np.ndarray, rho_phi: np.ndarray) -> np.ndarray:
        """The whole influence function at the queries, one column per row z, the penalty's own term included."""
        own = self.inverse_at(queries, z) * (rho_phi - rho * self.value(z))
        drift = self.penalty * (self.inverse_at(queries, self.x) @ self.dual)
        return own - drift[:, None]

    def _k(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return gram("gaussian", self.bandwidth, a, b)
