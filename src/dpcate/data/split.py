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
from dpcate.privacy import Neighbours

SplitKind = Literal["crossfit", "disjoint", "none"]

SPLIT_SEED = 20250424  # public, the same for everybody: a split is not a secret and not a choice


@dataclass(frozen=True)
class Split:
    """The rule of each kind: how many parts, which part trains the nuisances, which meets them.

    | kind     | nuisances trained on | second stage on | budget                                     |
    |----------|----------------------|-----------------|--------------------------------------------|
    | disjoint | part 0               | part 1          | each stage may spend all of it (parallel)  |
    | crossfit | the other part       | all rows        | the stages share μ²; the parts are parallel|
    | none     | all rows             | all rows        | the stages share μ²                        |
    """

    kind: SplitKind

    @property
    def parts(self) -> int:
        return 1 if self.kind == "none" else 2

    @property
    def stages_share_budget(self) -> bool:
        return self.kind != "disjoint"

    @property
    def pairs(self) -> list[tuple[int | None, int | None]]:
        """(part that trains a set of nuisances, part whose rows they are applied to); None means all rows."""
        return {"disjoint": [(0, 1)], "crossfit": [(1, 0), (0, 1)], "none": [(None, None)]}[self.kind]

    @property
    def second_stage_part(self) -> int | None:
        return 1 if self.kind == "disjoint" else None


def split_rows(rows: Rows, split: Split, neighbours: Neighbours) -> np.ndarray:
    """The part of each row."""
    numbers = np.arange(rows.persons, dtype=np.uint64)
    keys = numbers if neighbours == "replace-one" else rows.person_key
    scattered = mix(keys ^ np.uint64(SPLIT_SEED))
    if neighbours == "replace-one":
        part_of_person = np.argsort(np.argsort(scattered, kind="stable"), kind="stable") % split.parts
    else:
        part_of_person = (scattered >> np.uint64(11)) % np.uint64(split.parts)
    return part_of_person.astype(int)[rows.person]
