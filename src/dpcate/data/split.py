"""Which rows serve which stage: by person and a public seed, never by what others' rows contain.

Under replace-one the persons are numbered 0..n−1, n is public, and a replaced person keeps the number:
parts are made by number, and are equal in size. Under add-or-remove-one numbers shift when somebody joins
or leaves, so a division by row index would move up to half of all rows; there the part follows from a
hash of the person's own name or row (proofs/splitting.md).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcate.data.rows import Rows, mix
from dpcate.privacy import Neighbours, Part

SplitKind = Literal["crossfit", "disjoint", "none"]

FITTED_PER_HELD_OUT = 4  # persons who are fitted on, for one who is held out
SPLIT_SEED = 20250424  # public, the same for everybody: a split is not a secret and not a choice


@dataclass(frozen=True)
class Split:
    """The rule of each kind: how many parts, which part trains the nuisances, which meets them.

    | kind     | nuisances trained on | second stage on | budget                                     |
    |----------|----------------------|-----------------|--------------------------------------------|
    | disjoint | part 0               | part 1          | each stage may spend all of it (parallel)  |
    | crossfit | the other part       | all rows        | the stages share μ²; the parts are parallel|
    | none     | all rows             | all rows        | the stages share μ²                        |

    With `held_out` one person in five is in a last part of its own, which neither stage reads: "all rows" above are
    then all others. What is asked of that part is parallel to the fit.
    """

    kind: SplitKind
    held_out: bool = False

    @property
    def pattern(self) -> tuple[int, ...]:
        """The parts that persons are dealt to, in turn."""
        fitted = (0,) if self.kind == "none" else (0, 1)
        return (*(fitted * FITTED_PER_HELD_OUT)[:FITTED_PER_HELD_OUT], len(fitted)) if self.held_out else fitted

    @property
    def parts(self) -> int:
        return len(set(self.pattern))

    def share(self, part: Part) -> float:
        """The share of the persons who are in a part."""
        if part is None:
            return 1.0
        wanted = part if isinstance(part, tuple) else (part,)
        return sum(dealt in wanted for dealt in self.pattern) / len(self.pattern)

    @property
    def stages_share_budget(self) -> bool:
        return self.kind != "disjoint"

    @property
    def pairs(self) -> list[tuple[Part, Part]]:
        """(part that trains a set of nuisances, part whose rows they are applied to); None means all rows."""
        whole = self._whole
        return {"disjoint": [(0, 1)], "crossfit": [(1, 0), (0, 1)], "none": [(whole, whole)]}[self.kind]

    @property
    def second_stage_part(self) -> Part:
        return 1 if self.kind == "disjoint" else self._whole

    @property
    def held_out_part(self) -> int | None:
        return self.parts - 1 if self.held_out else None

    @property
    def _whole(self) -> Part:
        """All who are not held out."""
        if not self.held_out:
            return None
        return 0 if self.kind == "none" else (0, 1)


def split_rows(rows: Rows, split: Split, neighbours: Neighbours) -> np.ndarray:
    """The part of each row."""
    if split.parts == 1:
        return np.zeros(len(rows.person), dtype=int)
    numbers = np.arange(rows.persons, dtype=np.uint64)
    keys = numbers if neighbours == "replace-one" else rows.person_key
    scattered = mix(keys ^ np.uint64(SPLIT_SEED))
    if neighbours == "replace-one":
        turn = np.argsort(np.argsort(scattered, kind="stable"), kind="stable") % len(split.pattern)
    else:
        turn = (scattered >> np.uint64(11)) % np.uint64(len(split.pattern))
    return np.array(split.pattern)[turn.astype(int)][rows.person]
