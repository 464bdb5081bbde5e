"""What a private regression is given: rows as (x, ρ, ρφ), and the public facts around them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpcate.privacy import Neighbours, Part
from dpcate.regress.columns import ColumnMoments

if TYPE_CHECKING:
    from dpcate.regress.moments import EffectStart


def signal(n: float, mu: float, neighbours: Neighbours, rows_per_person: int) -> float:
    """n·μ as one row per person under replace-one would see it: what a budget is worth."""
    return n * mu / rows_per_person * (1 if neighbours == "replace-one" else 2)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Minimise  Σ ρᵢg(xᵢ)² − 2(ρφ)ᵢg(xᵢ).  Absent rows have ρ = ρφ = 0 and contribute zero.

    Public: `reference`, points that fill the covariates' box; `n`, the fixed number by which sums are
    divided; `span`, the width of the range in which g can lie a priori; `curvature`, ρ of a typical row;
    `multiplier`, what a unit of outcome does to ρφ; `two_valued`, whether the outcome takes two values
    only; `part`, which part of the rows this is; `columns`, released moments of x, `start`, what a first stage
    learned of g, and `outcome_scale`, the outcome's own, for stages that can use them.
    Private: the rows; `person`, who owns each row, numbered 0..persons−1, None where nobody owns two; `treated`,
    each row's arm, None where arms are not told apart.
    """

    x: np.ndarray
    rho: np.ndarray
    rho_phi: np.ndarray
    reference: np.ndarray
    n: float
    span: float
    curvature: float
    multiplier: float
    two_valued: bool
    neighbours: Neighbours
    rows_per_person: int
    part: Part
    person: np.ndarray | None = None
    treated: np.ndarray | None = None
    columns: ColumnMoments | None = None
    start: "EffectStart | None" = None
    outcome_scale: float | None = None

    def __repr__(self) -> str:
        return "<Problem: sealed>"

    @property
    def score_limit(self) -> float:
        """What |ρg − ρφ| hardly exceeds: the scale on which scores are counted."""
        return 2 * self.multiplier * self.span

    def signal(self, mu: float) -> float:
        return signal(self.n, mu, self.neighbours, self.rows_per_person)

    def scores(self, g: np.ndarray | float) -> np.ndarray:
        """ρφ − ρg: half the negative derivative of the loss, row by row."""
        return self.rho_phi - self.rho * g
