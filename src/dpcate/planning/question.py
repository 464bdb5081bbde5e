"""What is asked of a plan: a fit that has not happened, on people nobody has looked at."""

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpcate.data import Rows
from dpcate.encoding import decode_covariates, encode_covariates, reference_points
from dpcate.errors import InputError
from dpcate.estimator import PrivateCATE, plan_of
from dpcate.nuisance import KnownNuisances, KnownPropensity, SuppliedNuisances
from dpcate.pipeline import Pipeline
from dpcate.planning.standin import Assumptions, StandIn
from dpcate.release import Release
from dpcate.schema import Schema
from dpcate.tables import Columns, as_columns

POINTS = 256  # public, spread evenly over the schema's box
MOST_ROWS = 10**9
NOT_PLANNED = ("calibration", "ledger", "random_state")
SETTINGS = tuple(
    name
    for name in inspect.signature(PrivateCATE).parameters
    if name not in ("schema", "epsilon", "delta", *NOT_PLANNED)
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """`settings` are further parameters of `PrivateCATE`; `alpha` is the level of the intervals."""

    schema: Schema
    rows: int
    epsilon: float
    delta: float
    assumptions: Assumptions
    settings: Mapping[str, Any]
    alpha: float = 0.1

    def __post_init__(self) -> None:
        """Everything is checked as a fit would, before anything is simulated."""
        unknown = [name for name in self.settings if name not in SETTINGS]
        if unknown:
            raise InputError(f"a plan has no setting {unknown[0]!r}; it takes {', '.join(SETTINGS)}")
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 0 < self.rows <= MOST_ROWS:
            raise InputError(f"rows must be a whole number from 1 to {MOST_ROWS:,}")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 < self.alpha < 1:
            raise InputError("alpha must lie between 0 and 1; 0.1 gives 90% intervals")
        if isinstance(self.settings.get("nuisance"), SuppliedNuisances):
            raise InputError("supplied models cannot be foreseen: plan with nuisance='moments' instead")
        self.pipeline.require_fitting(self.persons)

    @cached_property
    def pipeline(self) -> Pipeline:
        """All that the fit would decide beforehand."""
        return plan_of(PrivateCATE(self.schema, epsilon=self.epsilon, delta=self.delta, **self.settings))

    def tried(self, rows: Rows, epsilon: float, seed: int) -> Release:
        """What the fit would release about these people with this ε and reproducible noise."""
        budget = dataclasses.replace(self.pipeline.budget, epsilon=epsilon)
        seeded = dataclasses.replace(self.pipeline, budget=budget, random_state=seed)
        return seeded.execute(rows, report=lambda stage, done: None, reserve=lambda: None).release

    @property
    def persons(self) -> int:
        """As few as there can be: everybody has all the rows that the schema allows."""
        return -(-self.rows // self.schema.max_rows_per_person)

    @property
    def second_stage(self) -> str:
        return self.pipeline.second_stage.name

    @property
    def split(self) -> str:
        return self.pipeline.split.kind

    def instead(self, **settings: Any) -> "Question":
        """The same question with other settings."""
        return dataclasses.replace(self, settings={**self.settings, **settings})

    @property
    def stand_in(self) -> StandIn:
        nuisance = self.settings.get("nuisance")
        known = nuisance if isinstance(nuisance, KnownPropensity | KnownNuisances) else None
        return StandIn(self.schema, self.assumptions, known)

    @cached_property
    def points(self) -> Columns:
        """Where the effect is looked at: the declared queries, or all over the schema's box."""
        queries = self.settings.get("queries")
        if queries is not None:
            return as_columns(queries, list(self.schema.covariates))
        return decode_covariates(self.schema, reference_points(self.schema, POINTS))

    @property
    def encoded_points(self) -> np.ndarray:
        return encode_covariates(self.schema, self.points)[0]
