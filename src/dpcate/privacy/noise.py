"""Where randomness comes from. Only `mechanisms` may call this module.

- `ExactNoise`: OpenDP's exact discrete Gaussian, fed by the operating system. For everything released.
- `StreamNoise`: a ChaCha20 stream keyed by the operating system. For bulk noise such as DP-SGD's.
- `SeededNoise`: reproducible, for tests and teaching. What it touches is not private, and says so.
"""

import functools
import os
import secrets
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dpcate.errors import InputError

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

GRID_BITS = 100  # the discrete Gaussian lives on a grid of 2^-100 standard deviations (proofs/gaussian.md)


class NoiseSource(Protocol):
    @property
    def private(self) -> bool: ...

    def add(self, value: Array, sd: float) -> Array:
        """value + N(0, sd²I), entry by entry independent."""

    def bulk(self, shape: tuple[int, ...], sd: float) -> Array:
        """N(0, sd²I) in bulk."""

    def poisson_sample(self, population: int, rate: float) -> Indices:
        """Each member of 0..population−1 independently with probability `rate`."""


class StreamNoise:
    """Gaussian noise from a ChaCha20 stream under a 256-bit key that nobody learns; re-keyed after a fork."""

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        from randomgen import ChaCha

        self._process = os.getpid()
        self._generator = np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))

    def bulk(self, shape: tuple[int, ...], sd: float) -> Array:
        return sd * self._current().standard_normal(shape)

    def poisson_sample(self, population: int, rate: float) -> Indices:
        return np.flatnonzero(self._current().random(population) < rate)

    def _current(self) -> np.random.Generator:
        if os.getpid() != self._process:
            self._rekey()
        return self._generator


class ExactNoise(StreamNoise):
    """OpenDP's discrete Gaussian on a grid far below the noise; rounding cannot leak through it."""

    private = True

    def add(self, value: Array, sd: float) -> Array:
        noisy = _standard_gaussian(value.size)((value / sd).ravel().tolist())
        return sd * np.asarray(noisy, dtype=np.float64).reshape(value.shape)


@functools.lru_cache(maxsize=256)
def _standard_gaussian(size: int) -> Callable[[list[float]], list[float]]:
    """OpenDP's mechanism for vectors of this size and noise of sd 1; it keeps no state."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), dp.l2_distance(T=float)
    return cast(Callable[[list[float]], list[float]], dp.m.make_gaussian(*space, scale=1.0, k=-GRID_BITS))


class SeededNoise:
    """Reproducible Gaussian noise: anyone who knows the seed can subtract it."""

    private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def add(self, value: Array, sd: float) -> Array:
        return value + self.bulk(value.shape, sd)

    def bulk(self, shape: tuple[int, ...], sd: float) -> Array:
        return sd * self._generator.standard_normal(shape)

    def poisson_sample(self, population: int, rate: float) -> Indices:
        return np.flatnonzero(self._generator.random(population) < rate)


def noise_source(random_state: int | None) -> NoiseSource:
    """Secure noise for None; reproducible noise, hence no privacy, for a seed."""
    if random_state is None:
        return ExactNoise()
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InputError("random_state must be None (private) or a non-negative integer (reproducible, not private)")
    return SeededNoise(int(random_state))
