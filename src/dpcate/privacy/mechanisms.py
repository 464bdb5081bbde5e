"""The only door through which a statistic of the rows leaves, and the only place that draws noise.

Guarantee 3: a statistic with sensitivity Δ that leaves at μ carries Gaussian noise of sd Δ/μ (inflated by
`ROUNDING_SLACK`), and the accountant was charged μ before the noise was drawn.
Guarantee 4: shapes and parameters, which are public, are refused before the charge; a statistic that is
not finite is refused after it, because that refusal depends on the rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from dpcate.errors import MechanismError
from dpcate.privacy.accounting import Accountant, Charge, Declared, Event, Gaussian, Part, SampledGaussian
from dpcate.privacy.journal import Journal
from dpcate.privacy.noise import Array, NoiseSource
from dpcate.privacy.path import Kernel, NoisePath
from dpcate.privacy.sensitivity import Sensitivity

ROUNDING_SLACK = 1e-6  # covers float64 rounding of sums over up to 1e8 rows and the noise grid


@dataclass(frozen=True)
class Noisy:
    """A released statistic and the sd of the noise in each of its entries, which is public."""

    value: Array
    sd: float


@dataclass(frozen=True)
class SampledSums:
    """Who is in each batch (−1 fills up), and the noise of the next so many steps."""

    batches: NDArray[np.int32]
    noise: Callable[[int], Array]
    sd: float

    def __repr__(self) -> str:
        return "<SampledSums: sealed>"


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
        self, name: str, statistic: ArrayLike, *, sensitivity: Sensitivity, mu: float, part: Part = None
    ) -> Noisy:
        """statistic + N(0, (Δ/μ)²I)."""
        vector = np.asarray(statistic, dtype=np.float64)
        if vector.ndim != 1 or vector.size == 0:
            raise MechanismError(f"the release '{name}' must be a non-empty vector")
        return self._release(name, "gaussian vector", vector, sensitivity, mu, part)

    def symmetric(
        self, name: str, statistic: ArrayLike, *, sensitivity: Sensitivity, mu: float, part: Part = None
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

    def path(
        self,
        name: str,
        kernel: Kernel,
        *,
        sensitivity: Sensitivity,
        mu: float,
        part: Part = None,
        journal: Journal | None = None,
    ) -> NoisePath:
        """One path of a Gaussian process with covariance (Δ/μ)²k, for a function with Hilbert-space sensitivity Δ.

        Paid once: any number of adaptive questions to the same path costs nothing more (proofs/gaussian.md).
        """
        sd = self._charge(name, "gaussian process path", sensitivity, mu, part)
        return NoisePath(kernel, sd=sd, noise=self._noise, journal=journal)

    def sampled_sums(
        self,
        name: str,
        *,
        persons: int,
        training: SampledGaussian,
        dimension: int,
        norm_bound: float,
        part: Part = None,
    ) -> SampledSums:
        """Batches and noise for repeated sums over Poisson samples of persons, each person's part clipped to C.

        Every step adds N(0, (zC)²I) to the sum over its batch; the whole training is charged before the first
        batch is drawn (proofs/sampled-sums.md).
        """
        sd = training.noise_multiplier * norm_bound * (1 + ROUNDING_SLACK)
        if not (math.isfinite(sd) and sd > 0 and 0 < training.sampling_rate <= 1 and training.steps >= 1):
            raise MechanismError(f"the release '{name}' needs a positive noise, rate and number of steps")
        sensitivity = Sensitivity(norm_bound, "sampled-sums")
        self._accountant.charge(
            Charge(
                name=name, mechanism="sampled gaussian sums", event=training, sensitivity=sensitivity, sd=sd, part=part
            )
        )
        drawn = [self._noise.poisson_sample(persons, training.sampling_rate) for _ in range(training.steps)]
        capacity = max(batch_capacity(persons, training), *(len(chosen) for chosen in drawn))
        batches = np.full((training.steps, capacity), -1, dtype=np.int32)
        for batch, chosen in zip(batches, drawn, strict=True):
            batch[: len(chosen)] = chosen
        return SampledSums(batches, lambda steps: self._noise.bulk((steps, dimension), sd), sd)

    def external(self, name: str, spent: Event, *, part: Part = None) -> None:
        """Charge what somebody else's private model declares to spend; its noise is its own."""
        self._accountant.charge(
            Charge(name=name, mechanism="declared by its maker", event=spent, sensitivity=None, sd=None, part=part)
        )

    def unproven(self, name: str, statistic: ArrayLike, *, sd: float, claim: Declared, part: Part = None) -> Array:
        """A statistic with noise of a scale that no proof supports, charged as what is claimed for it.

        The scale may depend on rows; it goes into no charge and must go nowhere else.
        """
        vector = np.asarray(statistic, dtype=np.float64)
        self._accountant.charge(
            Charge(name=name, mechanism="unproven", event=claim, sensitivity=None, sd=None, part=part)
        )
        if not (np.isfinite(vector).all() and math.isfinite(sd) and sd > 0):
            raise MechanismError(f"the release '{name}' was not finite; its charge stands")
        return self._noise.add(vector, sd)

    def _release(
        self, name: str, mechanism: str, vector: Array, sensitivity: Sensitivity, mu: float, part: Part
    ) -> Noisy:
        sd = self._charge(name, mechanism, sensitivity, mu, part)
        if not np.isfinite(vector).all():
            raise MechanismError(f"the release '{name}' was not finite; its charge stands")
        return Noisy(self._noise.add(vector, sd), sd)

    def _charge(self, name: str, mechanism: str, sensitivity: Sensitivity, mu: float, part: Part) -> float:
        """Pay μ for a release with this sensitivity; the sd of the noise that it buys."""
        if not (math.isfinite(mu) and mu > 0 and math.isfinite(sensitivity.value) and sensitivity.value > 0):
            raise MechanismError(f"the release '{name}' needs a positive finite mu and sensitivity")
        sd = sensitivity.value * (1 + ROUNDING_SLACK) / mu
        self._accountant.charge(
            Charge(name=name, mechanism=mechanism, event=Gaussian(mu), sensitivity=sensitivity, sd=sd, part=part)
        )
        return sd


def batch_capacity(persons: int, training: SampledGaussian) -> int:
    """A padded batch size that some step exceeds with probability below 1e-12, so that shapes hardly ever change."""
    return int(min(persons, binom.isf(1e-12 / training.steps, persons, training.sampling_rate) + 1))
