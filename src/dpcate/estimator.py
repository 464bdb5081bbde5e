"""PrivateCATE: the method, a line per arrow of the data flow."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from sklearn.base import BaseEstimator

from dpcate._version import __version__
from dpcate.data import Rows, Split, read_rows, split_rows
from dpcate.data.split import SplitKind
from dpcate.encoding import reference_points
from dpcate.errors import DataError, InputError
from dpcate.nuisance import FirstStage, FittedNuisances, first_stage_named
from dpcate.nuisance.targets import TrainingRows
from dpcate.orthogonal import Learner, learner_named
from dpcate.privacy import Accountant, Budget, Charge, Gaussian, Mechanisms, Shares, noise_source
from dpcate.privacy.sensitivity import box_sum
from dpcate.regress import Features, Problem
from dpcate.release import ChargedMechanism, Release, Spec
from dpcate.schema import Schema

FEWEST_PERSONS = 10
COUNT_SHARE = 0.02  # of μ², for the private number of persons under add-or-remove-one
STAGE_ONE_SHARE = 0.15  # of μ² for each nuisance that is paid for, when the stages share the budget

Progress = Callable[[str, float], None]


class PrivateCATE(BaseEstimator):
    """Who benefits from a treatment, and by how much, under (ε, δ)-differential privacy.

    Formal guarantee: for any two neighbouring tables, and every schema, `release_` is (ε, δ)-DP for one
    person (at most `schema.max_rows_per_person` rows), by the page `proofs/features-release.md`, unless
    `random_state` is set, which makes the noise reproducible and the release say `private: false`.
    Everything computed from `release_` afterwards is free.

    Parameters
    ----------
    schema : the public facts; nothing is inferred from rows.
    epsilon, delta : the budget of the whole fit.
    learner : "r", "dr" or a `Weight`.
    second_stage : "features" or a `Features` with settings of your own.
    nuisance : "features", `KnownPropensity(...)` or `KnownNuisances(...)`.
    split : "crossfit", "disjoint" or "none".
    neighbours : "replace-one" or "add-or-remove-one".
    propensity_floor : propensities are clipped to [floor, 1 − floor].
    ledger : must be None; a fit is charged against its own budget only.
    random_state : None for private noise; an integer for reproducible noise without privacy.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        learner: str | Learner = "r",
        second_stage: str | Features = "features",
        nuisance: str | FirstStage = "features",
        split: str = "crossfit",
        neighbours: str = "replace-one",
        propensity_floor: float = 0.05,
        ledger: None = None,
        random_state: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.learner = learner
        self.second_stage = second_stage
        self.nuisance = nuisance
        self.split = split
        self.neighbours = neighbours
        self.propensity_floor = propensity_floor
        self.ledger = ledger
        self.random_state = random_state

    def fit(
        self,
        Y: Any = None,
        T: Any = None,
        *,
        X: Any = None,
        table: Any = None,
        progress: Progress | None = None,
    ) -> "PrivateCATE":
        """Spend the budget once and keep the release; the rows are not kept."""
        plan = _Plan.of(self)
        report = progress or (lambda stage, done: None)
        report("reading rows", 0.0)
        rows = read_rows(plan.schema, Y, T, X, table)
        self.release_ = plan.execute(rows, report)
        return self

    def effect(self, X: Any) -> np.ndarray:
        """The private effect at each row of X: post-processing, free."""
        return self._release().effect(X)

    def effect_interval(self, X: Any, alpha: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) at level 1 − alpha for privacy noise and sampling noise; shrinkage is not in it."""
        return self._release().effect_interval(X, alpha)

    def ate(self, X: Any) -> float:
        """The effect averaged over the public rows X."""
        return self._release().ate(X)

    def _release(self) -> Release:
        if not hasattr(self, "release_"):
            raise InputError("nothing has been fitted yet: call fit first")
        return self.release_


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Everything that is decided before a row is read."""

    schema: Schema
    budget: Budget
    learner: Learner
    second_stage: Features
    first_stage: FirstStage
    split: Split
    propensity_floor: float
    random_state: int | None

    @classmethod
    def of(cls, estimator: PrivateCATE) -> "_Plan":
        if not isinstance(estimator.schema, Schema):
            raise InputError("schema must be a dpcate.Schema; dpcate.Schema.load reads one from a TOML file")
        if estimator.split not in get_args(SplitKind):
            raise InputError(f"split must be one of {', '.join(get_args(SplitKind))}")
        floor = estimator.propensity_floor
        if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 0.5:
            raise InputError("propensity_floor must lie above 0 and below 0.5; 0.05 is a common choice")
        if estimator.ledger is not None:
            raise InputError("ledger must be None: this version charges each fit against its own budget only")
        noise_source(estimator.random_state)
        plan = cls(
            schema=estimator.schema,
            budget=Budget(epsilon=estimator.epsilon, delta=estimator.delta, neighbours=estimator.neighbours),
            learner=learner_named(estimator.learner),
            second_stage=_second_stage_named(estimator.second_stage),
            first_stage=first_stage_named(estimator.nuisance),
            split=Split(estimator.split),
            propensity_floor=float(floor),
            random_state=estimator.random_state,
        )
        plan._paid()
        return plan

    def execute(self, rows: Rows, report: Progress) -> Release:
        mechanisms = Mechanisms(Accountant(self.budget, self.split.parts), noise_source(self.random_state))
        persons, mu = self._count_persons(rows, mechanisms)
        stage_one, stage_two = self._stage_budgets(mu)
        part = split_rows(rows, self.split, self.budget.neighbours)

        rho, rho_phi = np.zeros(len(part)), np.zeros(len(part))
        for step, (trained_on, applied_to) in enumerate(self.split.pairs):
            report("private nuisances", 0.1 + 0.5 * step / len(self.split.pairs))
            training = self._training_rows(rows, part, trained_on, persons)
            nuisances = self._fit_nuisances(training, mechanisms, stage_one)
            chosen = _chosen(part, applied_to)
            pair = self.learner.pair(rows.treated[chosen], rows.outcome[chosen], rows.x[chosen], nuisances)
            rho[chosen], rho_phi[chosen] = pair.rho, pair.rho_phi
        report("private second stage", 0.6)
        problem = self._second_stage_problem(rows, part, rho * rows.present, rho_phi * rows.present, persons)
        model = self.second_stage.fit(problem, mechanisms, stage_two, "effect")
        report("release", 1.0)
        return self._release(mechanisms, persons, model)

    def _count_persons(self, rows: Rows, mechanisms: Mechanisms) -> tuple[int, float]:
        """The number of persons: public under replace-one, released with noise otherwise; and the μ left."""
        if self.budget.neighbours == "replace-one":
            if rows.persons < FEWEST_PERSONS:
                raise DataError(f"too few rows: at least {FEWEST_PERSONS} persons are needed")
            return rows.persons, self.budget.mu
        shares = Shares({"count": COUNT_SHARE, "rest": 1 - COUNT_SHARE})
        count = mechanisms.vector(
            "number of persons",
            [float(rows.persons)],
            sensitivity=box_sum(widths=(1.0,)),
            mu=shares.mu("count", self.budget.mu),
        )
        return max(FEWEST_PERSONS, round(float(count.value[0]))), shares.mu("rest", self.budget.mu)

    def _stage_budgets(self, mu: float) -> tuple[float, float]:
        """The μ of each stage: all of it for both on disjoint parts, shares of μ² otherwise."""
        paid = len(self._paid())
        if paid == 0 or not self.split.stages_share_budget:
            return mu, mu
        shares = Shares({"one": paid * STAGE_ONE_SHARE, "two": 1 - paid * STAGE_ONE_SHARE})
        return shares.mu("one", mu), shares.mu("two", mu)

    def _paid(self) -> tuple[str, ...]:
        return self.first_stage.paid(self.learner.needs)

    def _persons_in(self, part: int | None, persons: int) -> float:
        """The public number that sums over a part are divided by."""
        return float(persons if part is None else persons / self.split.parts)

    def _training_rows(self, rows: Rows, part: np.ndarray, trained_on: int | None, persons: int) -> TrainingRows:
        return TrainingRows(
            schema=self.schema,
            rows=rows,
            chosen=_chosen(part, trained_on),
            n=self._persons_in(trained_on, persons),
            neighbours=self.budget.neighbours,
            part=trained_on,
        )

    def _fit_nuisances(self, training: TrainingRows, mechanisms: Mechanisms, mu: float) -> FittedNuisances:
        predictors = self.first_stage.fit(training, self.learner.needs, mechanisms, mu)
        return FittedNuisances(self.schema, self.propensity_floor, predictors)

    def _second_stage_problem(
        self, rows: Rows, part: np.ndarray, rho: np.ndarray, rho_phi: np.ndarray, persons: int
    ) -> Problem:
        used = self.split.second_stage_part
        chosen = _chosen(part, used)
        return Problem(
            x=rows.x[chosen],
            rho=rho[chosen],
            rho_phi=rho_phi[chosen],
            reference=reference_points(self.schema),
            n=self._persons_in(used, persons),
            span=self.schema.outcome.range,
            curvature=self.learner.curvature,
            multiplier=self.learner.multiplier,
            two_valued=self.schema.outcome.binary,
            neighbours=self.budget.neighbours,
            rows_per_person=self.schema.max_rows_per_person,
            part=used,
        )

    def _release(self, mechanisms: Mechanisms, persons: int, model: Any) -> Release:
        return Release(
            library=__version__,
            private=mechanisms.private,
            guarantee="proven",
            proof="features-release",
            epsilon=float(self.budget.epsilon),
            delta=float(self.budget.delta),
            neighbours=self.budget.neighbours,
            persons=persons,
            schema=self.schema,
            spec=Spec(
                learner=self.learner.name,
                second_stage=self.second_stage.name,
                nuisance=self.first_stage.name,
                split=self.split.kind,
                propensity_floor=self.propensity_floor,
            ),
            charges=[_charged(charge, self.split.parts) for charge in mechanisms.accountant.charges],
            model=model,
        )


def _second_stage_named(second_stage: str | Features) -> Features:
    if isinstance(second_stage, Features):
        return second_stage
    if second_stage == "features":
        return Features()
    raise InputError("second_stage must be 'features' or a dpcate.Features(...)")


def _chosen(part: np.ndarray, wanted: int | None) -> np.ndarray:
    return np.arange(len(part)) if wanted is None else np.flatnonzero(part == wanted)


def _charged(charge: Charge, parts: int) -> ChargedMechanism:
    return ChargedMechanism(
        name=charge.name,
        mechanism=charge.mechanism,
        rows="all rows" if charge.part is None else f"part {charge.part + 1} of {parts}",
        mu=charge.event.mu if isinstance(charge.event, Gaussian) else math.nan,
        sensitivity=charge.sensitivity.value,
        sd=charge.sd,
        proof=charge.sensitivity.proof,
    )
