"""Everything that the moments engine does to rows: counts and norm-clipped sums. Privacy can be checked here alone.

A row has a residual  r = t − Σ_b s_b·g_b(x),  one function g_b = χ'θ_b per block, and pulls u_b: the fit makes
Σ r·u_b·χ(x) vanish for every block b. Four releases touch rows, each a sum over rows of something bounded, divided by
the public n:

| release         | what one row adds                                             | bound                  |
|-----------------|---------------------------------------------------------------|------------------------|
| `values`        | 1 in the bin of its target                                    | histogram              |
| `sizes`         | 1 in the bin of its group and \\|r\\|                           | histogram              |
| `scores`        | clip(r, ±c)·(d_b∘χ(x)·u_b)_b, rescaled to norm at most C      | clipped-sum            |
| `second_moment` | vv' for chosen entries v of χ(x), rescaled to norm at most C  | clipped-second-moment  |

Everything handed to these functions (θ, c, C, d, bins, which entries) is public or a function of earlier releases. Sums
run over batches of rows, so they may as well be streamed, distributed, or computed on another device.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dpcate.bins import size_bins
from dpcate.models.basis import Basis
from dpcate.privacy import Mechanisms, Neighbours, Noisy
from dpcate.privacy.sensitivity import Sensitivity, clipped_second_moment, clipped_sum, histogram

BATCH = 1 << 15


@dataclass(kw_only=True)
class MomentRows:
    """Rows as targets t, and by block slopes s and pulls u; absent rows are zero everywhere and are not counted.

    Public: `n`, by which sums are divided, and `limit`, what |r| hardly exceeds. `group` (0 or 1, here the arm) is
    private like all else; the sizes of residuals are counted by it.
    """

    x: np.ndarray
    target: np.ndarray
    slopes: np.ndarray
    pulls: np.ndarray
    group: np.ndarray
    present: np.ndarray
    n: float
    limit: float
    neighbours: Neighbours
    rows_per_person: int
    part: int | None
    mechanisms: Mechanisms
    _features: np.ndarray | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return "<MomentRows: sealed>"

    def describe(self, basis: Basis) -> None:
        """Evaluate those terms of the basis at the rows that were not known before."""
        known = 0 if self._features is None else self._features.shape[1]
        if known == len(basis.terms):
            return
        new = basis.at(self.x, basis.terms[known:])
        self._features = np.hstack([self._features, new]) if known else new

    def values(self, edges: np.ndarray, mu: float, name: str) -> Noisy:
        """The share of rows by target, in bins with these inner ends."""
        bins = np.searchsorted(edges, self.target[self.present], side="right")
        return self._release(name, np.bincount(bins, minlength=len(edges) + 1), self._one_bin, mu)

    def sizes(self, coefficients: np.ndarray, edges: np.ndarray, mu: float, name: str) -> Noisy:
        """The share of rows by group and |r|, in bins with these upper ends."""
        counts = np.zeros(2 * len(edges))
        for rows in self._batches():
            bins = size_bins(self._residual(rows, coefficients), edges) + len(edges) * self.group[rows]
            counts += np.bincount(bins[self.present[rows]], minlength=len(counts))
        return self._release(name, counts, self._one_bin, mu)

    def scores(
        self,
        coefficients: np.ndarray,
        clips: np.ndarray,
        direction: np.ndarray,
        norm_bound: float,
        mu: float,
        name: str,
    ) -> Noisy:
        """The mean of the clipped scores along d∘χ by block; zero where d is, of which nothing is released."""
        total = np.zeros(direction.shape)
        for rows in self._batches():
            features, pulls, clip = self._features[rows], self.pulls[:, rows], clips[self.group[rows]]
            residual = np.clip(self._residual(rows, coefficients), -clip, clip)
            squares = direction**2 @ (features**2).T
            norms = np.abs(residual) * np.sqrt((pulls**2 * squares).sum(axis=0))
            residual *= np.minimum(1.0, norm_bound / np.maximum(norms, 1e-300))
            total += direction * ((residual * pulls) @ features)
        looked = direction > 0
        noisy = self._release(name, total[looked], self.score_bound(norm_bound), mu)
        total[looked] = noisy.value
        return dataclasses.replace(noisy, value=total)

    def score_bound(self, norm_bound: float) -> Sensitivity:
        """By how much one neighbour can change a sum of scores of at most this norm."""
        return clipped_sum(norm_bound=norm_bound, neighbours=self.neighbours, rows=self.rows_per_person)

    def second_moment(self, chosen: np.ndarray, norm_bound: float, mu: float, name: str) -> Noisy:
        """The mean of vv' over the chosen entries v of χ."""
        total = np.zeros((len(chosen), len(chosen)))
        for rows in self._batches():
            features = self._features[rows][:, chosen] * self.present[rows, None]
            norms = np.maximum(np.linalg.norm(features, axis=1), 1e-300)
            features *= np.minimum(1.0, norm_bound / norms)[:, None]
            total += features.T @ features
        bound = clipped_second_moment(norm_bound=norm_bound, neighbours=self.neighbours, rows=self.rows_per_person)
        return self.mechanisms.symmetric(
            name, total / self.n, sensitivity=bound.scaled(1 / self.n), mu=mu, part=self.part
        )

    @property
    def _one_bin(self) -> Sensitivity:
        return histogram(neighbours=self.neighbours, rows=self.rows_per_person)

    def _release(self, name: str, total: np.ndarray, bound: Sensitivity, mu: float) -> Noisy:
        return self.mechanisms.vector(name, total / self.n, sensitivity=bound.scaled(1 / self.n), mu=mu, part=self.part)

    def _residual(self, rows: slice, coefficients: np.ndarray) -> np.ndarray:
        fitted = coefficients @ self._features[rows].T
        return self.target[rows] - (self.slopes[:, rows] * fitted).sum(axis=0)

    def _batches(self) -> Iterator[slice]:
        for start in range(0, len(self.x), BATCH):
            yield slice(start, start + BATCH)
