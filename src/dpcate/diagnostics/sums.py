"""Everything that diagnostics do to rows: counts and bounded sums. Privacy can be checked here alone.

| release   | what one row adds                                         | bound       |
|-----------|-----------------------------------------------------------|-------------|
| `counts`  | 1 in one bin                                              | histogram   |
| `in_box`  | weights ∘ v with every entry of v clipped to [0, 1]       | box-sum     |
| `in_ball` | weights ∘ v with every entry of v clipped to [−1, 1],     | clipped-sum |
|           | in the block of the row's group                           |             |

Bins, groups and entries are functions of the row and of earlier releases; absent rows add nothing. An entry that is not
a number counts as zero, so nothing in a row can make a release fail.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpcate.privacy import Mechanisms, Neighbours, Noisy, Part
from dpcate.privacy.sensitivity import Sensitivity, box_sum, clipped_sum, histogram

Weights = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The presence of each row, and what every release of sums over them needs to know."""

    present: np.ndarray
    neighbours: Neighbours
    rows_per_person: int
    part: Part
    mechanisms: Mechanisms

    def __repr__(self) -> str:
        return "<Sums: sealed>"

    def counts(self, name: str, bins: np.ndarray, size: int, mu: float) -> Noisy:
        """How many rows are in each of so many bins."""
        total = np.bincount(np.clip(bins[self.present], 0, size - 1), minlength=size).astype(float)
        return self._release(name, total, histogram(neighbours=self.neighbours, rows=self.rows_per_person), mu)

    def in_box(self, name: str, entries: Iterable[np.ndarray], weights: Weights, mu: float) -> Noisy:
        """Σ weights ∘ v, v in the unit box."""
        total = np.array([self._clipped(entry, 0.0).sum() for entry in entries]) * weights
        return self._release(name, total, box_sum(widths=weights, rows=self.rows_per_person), mu)

    def in_ball(
        self, name: str, entries: Iterable[np.ndarray], weights: Weights, mu: float, groups: np.ndarray, size: int
    ) -> Noisy:
        """Σ weights ∘ v over each group, group after group, ‖weights ∘ v‖ ≤ ‖weights‖."""
        group = np.clip(groups[self.present], 0, size - 1)
        columns = [np.bincount(group, self._clipped(entry, -1.0), minlength=size) for entry in entries]
        bound = clipped_sum(
            norm_bound=float(np.linalg.norm(weights)), neighbours=self.neighbours, rows=self.rows_per_person
        )
        return self._release(name, (np.column_stack(columns) * weights).ravel(), bound, mu)

    def _clipped(self, entry: np.ndarray, low: float) -> np.ndarray:
        return np.clip(np.nan_to_num(entry[self.present], nan=0.0), low, 1.0)

    def _release(self, name: str, total: np.ndarray, bound: Sensitivity, mu: float) -> Noisy:
        return self.mechanisms.vector(name, total, sensitivity=bound, mu=mu, part=self.part)
