"""Each nuisance as a private regression: its rows, its public range, what a typical row weighs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcate.data import Rows
from dpcate.encoding import reference_points
from dpcate.privacy import Neighbours
from dpcate.regress import ColumnMoments, Problem
from dpcate.schema import Schema


@dataclass(frozen=True, kw_only=True)
class TrainingRows:
    """The rows that train one set of nuisances, and the public facts around them; `propensity` where it is known;
    in how many late rounds the effect is to be fitted to the end too (None: by rule; 0: a second stage does that)."""

    schema: Schema
    rows: Rows
    chosen: np.ndarray
    n: float
    neighbours: Neighbours
    part: int | None
    columns: ColumnMoments | None = None
    propensity_floor: float = 0.05
    propensity: Callable[[np.ndarray], np.ndarray] | None = None
    late_rounds: int | None = 0

    def __repr__(self) -> str:
        return "<TrainingRows: sealed>"

    def problem(self, target: str) -> Problem:
        """The regression whose solution, plus the centre of its range, is the nuisance `target`."""
        rows, outcome = self.rows, self.schema.outcome
        treated, present = rows.treated[self.chosen], rows.present[self.chosen].astype(float)
        if target == "propensity":
            weight, label, span, curvature = present, treated - 0.5, 1.0, 1.0
        else:
            arm = {"outcome": 1.0, "outcome_control": 1.0 - treated, "outcome_treated": treated}[target]
            weight = present * arm
            label, span = rows.outcome[self.chosen] - centre_of(self.schema, target), outcome.range
            curvature = 1.0 if target == "outcome" else 0.5
        return Problem(
            x=rows.x[self.chosen],
            rho=weight,
            rho_phi=weight * label,
            treated=treated,
            person=rows.person_numbers(self.chosen) if self.schema.max_rows_per_person > 1 else None,
            reference=reference_points(self.schema),
            n=self.n,
            span=span,
            curvature=curvature,
            multiplier=1.0,
            two_valued=target == "propensity" or outcome.binary,
            neighbours=self.neighbours,
            rows_per_person=self.schema.max_rows_per_person,
            part=self.part,
            columns=self.columns,
        )


def centre_of(schema: Schema, target: str) -> float:
    return 0.5 if target == "propensity" else (schema.outcome.low + schema.outcome.high) / 2
