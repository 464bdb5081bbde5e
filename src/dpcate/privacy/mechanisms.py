"""The only door through which a statistic of the rows leaves, and the only place that draws noise.

Guarantee 3: a statistic with sensitivity Δ that leaves at μ carries Gaussian noise of sd Δ/μ (inflated by
`ROUNDING_SLACK`), and the accountant was charged μ before the noise was drawn.
Guarantee 4: shapes and parameters, which are public, are refused before the charge; a statistic that is
not finite is refused after it, because that refusal depends on the rows.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcate.errors import MechanismError
from dpcate.privacy.accounting import Accountant, Charge, Gaussian
from dpcate.privacy.noise import Array, NoiseSource
from dpcate.privacy.sensitivity import Sensitivity

ROUNDING_SLACK = 1e-6  # covers float64 rounding of sums over up to 1e8 rows and the noise grid


@dataclass(frozen=True)
class Noisy:
    """A released statistic and the sd of the noise in each of its entries, which is public."""

    value: Array
    sd: float


class Mechanisms:
    """Gaussian mechanisms over one accountant and one noise source."""

    def __init__(self, accountant: Accountant, noise: NoiseSource) -> None:
        self._accountant = accountant
        self._noise = noise

    @property
    def private(self) -> bool:
        return self._noise.private

    @property
    def accountant(self) -> Accountant:
        return self._accountant

    def vector(
        self, name: str, statistic: ArrayLike, *, sensitivity: Sensitivity, mu: float, part: int | None = None
    ) -> Noisy:
        """statistic + N(0, (Δ/μ)²I)."""
        vector = np.asarray(statistic, dtype=np.float64)
        if vector.ndim != 1 or vector.size == 0:
            raise MechanismError(f"the release '{name}' must be a non-empty vector")
        return self._release(name, "gaussian vector", vector, sensitivity, mu, part)

    def symmetric(
        self, name: str, statistic: ArrayLike, *, sensitivity: Sensitivity, mu: float, part: int | None = None
    ) -> Noisy:
        """A symmetric matrix; Δ bounds the Frobenius norm.

        Off-diagonal entries are scaled by √2 while noise is added, so that the vector of the upper triangle
        has the matrix's Frobenius norm. The returned sd is that of a diagonal entry; off the diagonal it is
        smaller by √2.
        """
        matrix = np.asarray(statistic, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise MechanismError(f"the release '{name}' must be a square matrix")
        upper = np.triu_indices(len(matrix))
        scale = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
        noisy = self._release(name, "gaussian symmetric matrix", matrix[upper] * scale, sensitivity, mu, part)
        released = np.zeros_like(matrix)
        released[upper] = noisy.value / scale
        return Noisy(released + np.triu(released, 1).T, noisy.sd)

    def _release(
        self, name: str, mechanism: str, vector: Array, sensitivity: Sensitivity, mu: float, part: int | None
    ) -> Noisy:
        if not (math.isfinite(mu) and mu > 0 and math.isfinite(sensitivity.value) and sensitivity.value > 0):
            raise MechanismError(f"the release '{name}' needs a positive finite mu and sensitivity")
        sd = sensitivity.value * (1 + ROUNDING_SLACK) / mu
        self._accountant.charge(
            Charge(name=name, mechanism=mechanism, event=Gaussian(mu), sensitivity=sensitivity, sd=sd, part=part)
        )
        if not np.isfinite(vector).all():
            raise MechanismError(f"the release '{name}' was not finite; its charge stands")
        return Noisy(self._noise.add(vector, sd), sd)
