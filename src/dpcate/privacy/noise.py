"""Where randomness comes from. Only `mechanisms` may call this module.

- `ExactNoise`: the exact discrete Gaussian, fed by the operating system. For everything released.
- `StreamNoise`: a ChaCha20 stream keyed by the operating system. For bulk noise such as DP-SGD's.
- `SeededNoise`: reproducible, for tests and teaching. What it touches is not private, and says so.
"""

import os
import secrets
import threading
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcate.errors import InputError
from dpcate.privacy.gaussian import BITS, discrete_gaussian

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

STEPS = 2**BITS  # of the grid, in one sd
AHEAD = 640  # draws that are made at a time, since many cost little more than a few: enough for a small fit


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
        self._process: int | None = None

    def bulk(self, shape: tuple[int, ...], sd: float) -> Array:
        return sd * self._current().standard_normal(shape)

    def poisson_sample(self, population: int, rate: float) -> Indices:
        return np.flatnonzero(self._current().random(population) < rate)

    def _current(self) -> np.random.Generator:
        if os.getpid() != self._process:
            from randomgen import ChaCha

            self._process = os.getpid()
            self._generator = np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))
        return self._generator


class ExactNoise(StreamNoise):
    """The discrete Gaussian on a grid of 2^−64 sds, added to the value rounded to that grid, in integers: rounding
    cannot leak through it (proofs/gaussian.md).

    Some is drawn ahead, and no draw serves twice: a forked process forgets it, threads take turns, copies are refused.
    """

    private = True

    def __init__(self) -> None:
        super().__init__()
        self._ahead: list[int] = []
        self._drawn_by = os.getpid()
        self._turn = threading.Lock()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InputError("a noise source must not be copied: two copies would draw the same noise")

    def add(self, value: Array, sd: float) -> Array:
        grid = [_on_grid(each) for each in (value / sd).ravel().tolist()]
        sums = [each + noise for each, noise in zip(grid, self._draws(len(grid)), strict=True)]
        return sd * np.array([each / STEPS for each in sums]).reshape(value.shape)

    def _draws(self, count: int) -> list[int]:
        with self._turn:
            if os.getpid() != self._drawn_by:
                self._drawn_by, self._ahead = os.getpid(), []
            if len(self._ahead) < count:
                self._ahead += discrete_gaussian(max(count, AHEAD), os.urandom)
            drawn, self._ahead = self._ahead[:count], self._ahead[count:]
        return drawn


def _on_grid(value: float) -> int:
    """The nearest multiple of 2^−64, as a number of such steps; exact for any finite value."""
    numerator, denominator = value.as_integer_ratio()
    return ((numerator << (BITS + 1)) + denominator) // (2 * denominator)


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
