"""One sample path of a Gaussian process, asked adaptively: noise for a whole function, paid for once.

    U ~ GP(0, k + τ·1[x = z]),   answers r·U(x).
Past points X and their values u = U(X) are kept, never the outputs. With LL' = K_XX + τI and v = k(X, new),
    l = L⁻¹v,   U(new) | u ~ N(l'L⁻¹u, k_new,new + τI − l'l),
drawn as l'z + c·ε with cc' the conditional covariance, ε standard normal and z = L⁻¹u, the ε of the past. For
one point this costs O(i²); for a batch it is the same law, drawn jointly.

The jitter τ keeps the factor well conditioned. It stands for independent noise on top of GP(0, k), so it adds
privacy; cutting small eigenvalues off instead would leave directions without noise.

Guarantee 5: a point gets one value, ever. The same x (float64, bit by bit) is looked up and not drawn; a value is
in the journal before it is returned; a path that failed half-way, a copy of it or a forked process is
refused. Two draws for one point could be averaged, and enough of them would uncover the function.
"""

import os
import threading
from collections.abc import Callable
from itertools import islice
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtpsv

from dpcate.errors import InputError, MechanismError
from dpcate.privacy.journal import Journal
from dpcate.privacy.noise import Array, NoiseSource

Kernel = Callable[[Array, Array], Array]

JITTER = 1e-9
BATCH = 512  # points that are drawn jointly; a larger batch is cut, which changes nothing in law


class GrowingFactor:
    """L of a covariance that grows at its end: rows one after the other in one vector, which BLAS solves in place."""

    def __init__(self) -> None:
        self.size = 0
        self._packed = np.empty(0)

    def solve(self, columns: Array) -> Array:
        """L⁻¹ times each column, O(size²) each."""
        if self.size == 0:
            return columns
        return np.column_stack([dtpsv(self.size, self._packed, column, trans=1) for column in columns.T])

    def append(self, across: Array, corner: Array) -> None:
        """The rows [across' corner] below L."""
        start, size = self.size * (self.size + 1) // 2, self.size + len(corner)
        self._packed = roomy(self._packed, start, size * (size + 1) // 2)
        for left, right in zip(across.T, corner, strict=True):
            self.size += 1
            row = np.concatenate([left, right])[: self.size]
            self._packed[start : start + self.size] = row
            start += self.size


class NoisePath:
    """r·U(x); `kernel(A, B)` is the Gram matrix of a unit-diagonal kernel and `sd` the public r."""

    def __init__(self, kernel: Kernel, *, sd: float, noise: NoiseSource, journal: Journal | None = None) -> None:
        self.sd = sd
        self._kernel, self._noise, self._journal = kernel, noise, journal
        self._lock, self._process, self._sound = threading.Lock(), os.getpid(), True
        self._index: dict[bytes, int] = {}
        self._factor = GrowingFactor()
        self._points, self._values, self._white = np.empty((0, 0)), np.empty(0), np.empty(0)
        if journal is not None:
            self._restore(journal.points, journal.values)

    def __repr__(self) -> str:
        return "<NoisePath: sealed>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InputError("a noise path must not be copied: two copies would answer one point twice")

    def __len__(self) -> int:
        return len(self._index)

    @property
    def private(self) -> bool:
        return self._noise.private

    def at(self, points: ArrayLike) -> Array:
        """r·U at each row of `points`, drawn jointly where it has not been asked before."""
        asked = self._checked(points)
        keys = [point.tobytes() for point in asked]
        with self._lock:
            self._require_sound()
            fresh = {key: point for key, point in zip(keys, asked, strict=True) if key not in self._index}
            remaining = iter(fresh.values())
            while batch := list(islice(remaining, BATCH)):
                self._draw(np.array(batch))
            return self.sd * self._values[[self._index[key] for key in keys]]

    def attach(self, journal: Journal) -> None:
        """Write what has been drawn so far into an empty journal, and everything from here on."""
        with self._lock:
            self._require_sound()
            if self._journal is not None or len(journal.values):
                raise InputError("a noise path has one journal, and a journal one path")
            self._sound = False
            if size := len(self):
                journal.append(self._points[:size], self._values[:size])
            self._journal, self._sound = journal, True

    def close(self) -> None:
        """No more answers from here; the journal may be opened elsewhere."""
        with self._lock:
            self._sound = False
            if self._journal is not None:
                self._journal.close()

    def _draw(self, new: Array) -> None:
        across, corner = self._conditional(new)
        white = self._noise.bulk((len(new),), 1.0)
        values = across.T @ self._white[: len(self)] + corner @ white
        self._sound = False
        if self._journal is not None:
            self._journal.append(new, values)
        self._remember(new, values, white, across, corner)
        self._sound = True

    def _restore(self, points: Array, values: Array) -> None:
        """The path as it was: values from the journal, factor and ε computed from them."""
        if len({point.tobytes() for point in points}) != len(points):
            raise MechanismError("the noise journal holds two values for one point")
        for start in range(0, len(points), BATCH):
            new, u = points[start : start + BATCH], values[start : start + BATCH]
            across, corner = self._conditional(new)
            white = solve_triangular(corner, u - across.T @ self._white[: len(self)], lower=True)
            self._remember(new, u, white, across, corner)

    def _conditional(self, new: Array) -> tuple[Array, Array]:
        """l = L⁻¹v and the lower triangular c with cc' = k_new,new + τI − l'l.

        In exact arithmetic every pivot of cc' is at least τ.
        """
        across = (
            self._factor.solve(self._kernel(self._points[: len(self)], new)) if self._index else np.empty((0, len(new)))
        )
        covariance = self._kernel(new, new) - across.T @ across
        covariance[np.diag_indices_from(covariance)] += JITTER
        return across, np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def _remember(self, new: Array, values: Array, white: Array, across: Array, corner: Array) -> None:
        old, size = len(self), len(self) + len(new)
        if not old:
            self._points = np.empty((0, new.shape[1]))
        self._points, self._values, self._white = (
            roomy(array, old, size) for array in (self._points, self._values, self._white)
        )
        self._points[old:size], self._values[old:size], self._white[old:size] = new, values, white
        self._factor.append(across, corner)
        self._index.update((point.tobytes(), old + step) for step, point in enumerate(new))

    def _checked(self, points: ArrayLike) -> Array:
        asked = np.array(points, dtype=np.float64, order="C") + 0.0  # −0 and 0 are the same point
        if asked.ndim != 2 or not np.isfinite(asked).all():
            raise InputError("points must be a table of finite numbers, one point per row")
        if self._index and asked.shape[1] != self._points.shape[1]:
            raise InputError(f"a point has {self._points.shape[1]} coordinates here")
        return asked

    def _require_sound(self) -> None:
        if not self._sound or os.getpid() != self._process:
            raise MechanismError("this noise path cannot be continued here; open it again from its journal")


def roomy(array: Array, used: int, size: int) -> Array:
    """`array`, or a copy of its used part in at least twice the space, such that `size` rows fit."""
    if size <= len(array):
        return array
    larger = np.empty((max(size, 2 * len(array)), *array.shape[1:]))
    larger[:used] = array[:used]
    return larger
