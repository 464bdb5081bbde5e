"""Made-up people on whom a fit is tried out: drawn from the schema and a few declared guesses, never from rows.

Covariates are uniform over the schema's box, every level of a category equally likely. With a wave h along the first
covariate and b along the last two, both of mean zero and sd one, the effect is τ(x) = s_τ(1 + h(x)) and the outcome
m(x) + (a − π(x))τ(x) + e with m = middle + s√0.2·b(x); the sd of e is what is left of the outcome's sd s. Known
propensities and outcomes take the place of π and m.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcate.encoding import decode_covariates, placed, reference_points
from dpcate.errors import InputError
from dpcate.nuisance import KnownNuisances, KnownPropensity
from dpcate.schema import Category, Schema
from dpcate.tables import Columns

Array = np.ndarray

OUTCOME_SD = 1 / 6  # of the range: a bell that fills it
BINARY_SD = 0.4  # of the range: one in five
LARGEST_SD = 0.29  # of the range: flat over all of it
EFFECT_SD = 0.25  # of the outcome's sd
EXPLAINED = 0.2  # of the outcome's variance, by covariates
LEAST_LEFT = 0.1  # of the outcome's variance, unexplained, whatever a known model explains
EFFECT_WAVES, OUTCOME_WAVES = 1, 2  # along how many covariates, the first for the effect and the last for the outcome


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Guesses about the people, for anybody to read: a plan is as good as they are."""

    outcome_sd: float
    effect_sd: float
    treated: float

    @classmethod
    def of(
        cls, schema: Schema, outcome_sd: float | None, effect_sd: float | None, treated: float | None
    ) -> "Assumptions":
        """What is None follows from the outcome's range."""
        span, binary = schema.outcome.range, schema.outcome.binary
        largest = (0.5 if binary else LARGEST_SD) * span
        outcome_sd = span * (BINARY_SD if binary else OUTCOME_SD) if outcome_sd is None else outcome_sd
        if not _is_between(outcome_sd, 0, largest):
            raise InputError(f"outcome_sd must lie above 0 and at most {largest:.4g}, which the outcome's range allows")
        effect_sd = EFFECT_SD * outcome_sd if effect_sd is None else effect_sd
        if not _is_between(effect_sd, 0, outcome_sd):
            raise InputError(f"effect_sd must lie above 0 and at most {outcome_sd:.4g}, the outcome's sd")
        treated = 0.5 if treated is None else treated
        if not _is_between(treated, 0, 1) or treated == 1:
            raise InputError("treated is the share of persons who are treated: above 0 and below 1")
        return cls(outcome_sd=float(outcome_sd), effect_sd=float(effect_sd), treated=float(treated))


@dataclass(frozen=True)
class StandIn:
    """A population that fits the schema and the assumptions."""

    schema: Schema
    assumptions: Assumptions
    known: KnownPropensity | KnownNuisances | None = None

    def table(self, rows: int, seed: int) -> Columns:
        """People at random, each person with as many rows as the schema allows."""
        rng, schema = np.random.default_rng([20261115, seed]), self.schema
        x = placed(schema, rng.random((rows, len(schema.covariates))))
        treated = rng.random(rows) < self.propensity(x)
        mean = np.where(treated, *self._means(x)[::-1])
        outcome = schema.outcome
        if outcome.binary:
            seen = np.where(rng.random(rows) < (mean - outcome.low) / outcome.range, outcome.high, outcome.low)
        else:
            seen = np.clip(mean + self._left * rng.standard_normal(rows), outcome.low, outcome.high)
        names = np.array([schema.treatment.control, schema.treatment.treated], dtype=object)
        table = {
            **decode_covariates(schema, x),
            schema.treatment.name: names[treated.astype(int)],
            outcome.name: seen,
        }
        return table if schema.person is None else {**table, schema.person: self._owners(rows)}

    def effect(self, x: Array) -> Array:
        """The true effect at encoded points."""
        control, treated = self._means(x)
        return treated - control

    def propensity(self, x: Array) -> Array:
        if self.known is None:
            return np.full(len(x), self.assumptions.treated)
        pi = self.known.probability if isinstance(self.known, KnownPropensity) else self.known.propensity
        return self._evaluated(pi, x)

    def _means(self, x: Array) -> tuple[Array, Array]:
        """The expected outcome of controls and of treated, within the outcome's range."""
        known, outcome = self.known, self.schema.outcome
        if isinstance(known, KnownNuisances) and known.outcome is None:
            means = (self._evaluated(known.outcome_control, x), self._evaluated(known.outcome_treated, x))
        else:
            pi, effect = self.propensity(x), self.assumptions.effect_sd * (1 + self._effect_wave(x))
            whole = self._evaluated(known.outcome, x) if isinstance(known, KnownNuisances) else self._outcome(x)
            means = (whole - pi * effect, whole + (1 - pi) * effect)
        return tuple(np.clip(mean, outcome.low, outcome.high) for mean in means)

    def _outcome(self, x: Array) -> Array:
        outcome, sd = self.schema.outcome, self.assumptions.outcome_sd
        spread = math.sqrt(EXPLAINED) * sd * self._outcome_wave(x)
        if not outcome.binary:
            return (outcome.low + outcome.high) / 2 + spread
        rate = (1 - math.sqrt(max(1 - 4 * (sd / outcome.range) ** 2, 0.0))) / 2
        return outcome.low + rate * (outcome.range + spread)

    def _effect_wave(self, x: Array) -> Array:
        return self._standardised(x, lambda places: np.cos(np.pi * places[:, :EFFECT_WAVES]))

    def _outcome_wave(self, x: Array) -> Array:
        return self._standardised(x, lambda places: np.cos(2 * np.pi * places[:, -OUTCOME_WAVES:]))

    def _standardised(self, x: Array, waves: Callable[[Array], Array]) -> Array:
        """The sum of waves, with mean zero and sd one over the box."""
        here, everywhere = (
            waves(_places(self.schema, points)).sum(axis=1) for points in (x, reference_points(self.schema))
        )
        return (here - everywhere.mean()) / max(float(everywhere.std()), 1e-9)

    @cached_property
    def _left(self) -> float:
        """The sd of what neither covariates nor treatment explain."""
        x = reference_points(self.schema)
        pi, (control, treated) = self.propensity(x), self._means(x)
        explained = np.var(control + pi * (treated - control)) + np.mean(pi * (1 - pi) * (treated - control) ** 2)
        whole = self.assumptions.outcome_sd**2
        return math.sqrt(max(whole - float(explained), LEAST_LEFT * whole))

    def _evaluated(self, known: object, x: Array) -> Array:
        values = known(decode_covariates(self.schema, x)) if callable(known) else known
        return np.broadcast_to(np.nan_to_num(np.asarray(values, dtype=float)), (len(x),))

    def _owners(self, rows: int) -> Array:
        return np.arange(rows) // self.schema.max_rows_per_person


def _places(schema: Schema, x: Array) -> Array:
    """Where people are along each covariate: a number as it is, a level by its position."""
    places, start = [], 0
    for covariate in schema.covariates.values():
        block = x[:, start : start + covariate.width]
        start += covariate.width
        category = isinstance(covariate, Category)
        places.append((block.argmax(axis=1) + 0.5) / covariate.width if category else block[:, 0])
    return np.column_stack(places)


def _is_between(value: object, low: float, high: float) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and low < value <= high
