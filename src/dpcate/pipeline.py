"""The method, a line per arrow of the data flow: what was decided before a row was read, then its execution."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpcate._version import __version__
from dpcate.data import Rows, Split, split_rows
from dpcate.diagnostics import Chosen, Diagnosis, Met
from dpcate.encoding import reference_points
from dpcate.errors import DataError
from dpcate.findings import Diagnostics
from dpcate.models import Model, MomentsModel, PointsModel
from dpcate.nuisance import (
    FeaturesNuisance,
    FirstStage,
    FittedNuisances,
    KnownPropensity,
    MomentsNuisance,
    TrainingRows,
    first_stage_named,
    share_of,
)
from dpcate.orthogonal import Learner, R
from dpcate.paper import CuratorNotes, PaperFeatures, PaperKernel, PaperNetwork, paper_function, paper_queries
from dpcate.privacy import (
    Accountant,
    Budget,
    Charge,
    Declared,
    Gaussian,
    Mechanisms,
    Part,
    Request,
    SampledGaussian,
    Shares,
    gdp_mu,
    noise_source,
)
from dpcate.privacy.sensitivity import box_sum
from dpcate.regress import (
    MOST_ROWS,
    ColumnMoments,
    ColumnRows,
    EffectStart,
    Features,
    Kernel,
    KernelOracle,
    Moments,
    Network,
    Problem,
    SecondStage,
    private_average,
    private_columns,
)
from dpcate.release import Average, ChargedMechanism, DeclaredSpent, GaussianSpent, Release, SampledSpent, Spec
from dpcate.schema import Schema

FEWEST_PERSONS = 10
COUNT_SHARE = 0.02  # of μ², for the private number of persons under add-or-remove-one
COUNT_APART = 0.1  # of ε and δ, where the count then decides how networks are trained
COLUMNS_SHARE = 0.1  # of μ² at most, for the moments of the covariates; less where less gives errors of 0.5%
AVERAGE_SHARE = 0.04  # of μ², for the average effect

Progress = Callable[[str, float], None]


class UnprovenWarning(UserWarning):
    """No proof covers what was released."""


@dataclass(frozen=True)
class Executed:
    """What may be published, and what stays with the curator: an oracle, or notes that depend on rows."""

    release: Release
    kept: CuratorNotes | KernelOracle | None


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Everything that is decided before a row is read."""

    schema: Schema
    budget: Budget
    learner: Learner
    second_stage: SecondStage | PaperFeatures | PaperKernel | PaperNetwork
    first_stage: FirstStage
    split: Split
    propensity_floor: float
    calibration: Literal["proven", "paper"]
    queries: np.ndarray | None
    random_state: int | None
    diagnostics: Chosen

    @property
    def request(self) -> Request:
        """What a ledger has to know; a fit that is announced as Gaussian is held to it by its accountant."""
        return Request(
            budget=self.budget,
            gaussian=isinstance(self.second_stage, Features | Kernel | Moments)
            and _gaussian(self.first_stage, self.learner.needs),
            person=self.schema.person,
        )

    def execute(self, rows: Rows, report: Progress, reserve: Callable[[], None]) -> Executed:
        """Spend the budget; `reserve` pays for all of it before the first noise is drawn."""
        accountant = Accountant(self.budget, self.split.parts, gaussian=self.request.gaussian, reserve=reserve)
        mechanisms = Mechanisms(accountant, noise_source(self.random_state))
        persons, mu = self._count_persons(rows, mechanisms)
        self.require_fitting(persons)
        columns, mu_left = self._columns(rows, persons, mechanisms, self._first_half(self.diagnostics.rest(mu)))
        part = split_rows(rows, self.split, self.budget.neighbours)

        met = []
        rho, rho_phi, overlap = (np.zeros(len(part)) for _ in range(3))
        for step, (trained_on, applied_to) in enumerate(self.split.pairs):
            report("private nuisances", 0.1 + 0.5 * step / len(self.split.pairs))
            training = self._training_rows(rows, part, trained_on, persons, columns)
            nuisances, start = self._fit_nuisances(training, mechanisms, self._stage_one(mu_left))
            chosen = _chosen(part, applied_to)
            pair = self.learner.pair(rows.treated[chosen], rows.outcome[chosen], rows.x[chosen], nuisances)
            rho[chosen], rho_phi[chosen], overlap[chosen] = pair.rho, pair.rho_phi, pair.overlap
            met.append(Met(chosen, nuisances))
        found = self._diagnosis.of_models(rows, met, self.split.second_stage_part, mechanisms, mu)
        report("private second stage", 0.6)
        problem = self._second_stage_problem(
            rows, part, rho * rows.present, rho_phi * rows.present, persons, columns, start
        )
        reserved = self._reserved_for_average(mu_left)
        model, kept = self._second_stage(problem, mechanisms, nuisances, reserved)
        average = self._average(
            problem, model, overlap[_chosen(part, self.split.second_stage_part)], mechanisms, reserved
        )
        found |= self._judged(rows, part, met, model, persons, mechanisms)
        report("release", 1.0)
        return Executed(self._release(mechanisms, persons, self._at_queries(model, problem), average, found), kept)

    def _count_persons(self, rows: Rows, mechanisms: Mechanisms) -> tuple[int, float]:
        """The number of persons: public under replace-one, released with noise otherwise; and the μ left."""
        if self.budget.neighbours == "replace-one":
            if rows.persons < FEWEST_PERSONS:
                raise DataError(f"too few rows: at least {FEWEST_PERSONS} persons are needed")
            return rows.persons, self.budget.mu
        shares = Shares({"count": COUNT_SHARE, "rest": 1 - COUNT_SHARE})
        apart = Declared(COUNT_APART * self.budget.epsilon, COUNT_APART * self.budget.delta)
        gaussian = self.request.gaussian
        count = mechanisms.vector(
            "number of persons",
            [float(rows.persons)],
            sensitivity=box_sum(widths=(1.0,)),
            mu=shares.mu("count", self.budget.mu) if gaussian else gdp_mu(apart.epsilon, apart.delta),
        )
        if not gaussian:
            mechanisms.accountant.set_apart(apart)
        left = shares.mu("rest", self.budget.mu) if gaussian else mechanisms.accountant.budget.mu
        return max(FEWEST_PERSONS, round(float(count.value[0]))), left

    def _first_half(self, mu: float) -> float:
        """As printed, the first stage may spend (ε/2, δ/2), moments of the columns included."""
        if self.calibration == "proven":
            return mu
        return min(gdp_mu(self.budget.epsilon / 2, self.budget.delta / 2), mu)

    def _columns(
        self, rows: Rows, persons: int, mechanisms: Mechanisms, mu: float
    ) -> tuple[ColumnMoments | None, float]:
        """Moments of the covariates, if a stage needs them, and the μ left."""
        if not isinstance(self.second_stage, Moments) and not isinstance(_own(self.first_stage), MomentsNuisance):
            return None, mu
        enough = (np.sqrt(self.schema.width) / (0.005 * persons * mu)) ** 2
        shares = Shares({"columns": min(COLUMNS_SHARE, float(enough)), "rest": 1 - min(COLUMNS_SHARE, float(enough))})
        described = ColumnRows(
            x=rows.x,
            present=rows.present.astype(float),
            n=float(persons),
            neighbours=self.budget.neighbours,
            rows_per_person=self.schema.max_rows_per_person,
        )
        return private_columns(described, mechanisms, shares.mu("columns", mu)), shares.mu("rest", mu)

    @property
    def most_persons(self) -> float:
        """How many the second stage can take."""
        shared = 1 if self.split.second_stage_part is None else self.split.parts
        limited = isinstance(self.second_stage, Kernel)
        return shared * MOST_ROWS / self.schema.max_rows_per_person if limited else math.inf

    def require_fitting(self, persons: int) -> None:
        """Refuse by public numbers what the second stage would refuse later, before anything is spent on it."""
        if persons > self.most_persons:
            raise DataError(f"the exact kernel takes at most {MOST_ROWS} rows; use second_stage='features' for more")

    def _stage_one(self, mu: float) -> float:
        """The μ of the nuisances: all that is left on disjoint parts, or of the paper's half, else a share of μ²."""
        if self.calibration == "paper" or not self.split.stages_share_budget:
            return mu
        share = 1 - AVERAGE_SHARE if self._one_regression else share_of(self.first_stage, self.learner.needs)
        return mu * math.sqrt(share)

    @property
    def _one_regression(self) -> bool:
        """Whether a second stage would solve the first one's equations for the effect, on the same rows."""
        moments = isinstance(self.second_stage, Moments) and isinstance(_own(self.first_stage), MomentsNuisance)
        return moments and isinstance(self.learner, R) and self.split.kind == "none"

    def _persons_in(self, part: Part, persons: int) -> float:
        """The public number that sums over a part are divided by."""
        return persons * self.split.share(part)

    def _training_rows(
        self, rows: Rows, part: np.ndarray, trained_on: Part, persons: int, columns: ColumnMoments | None
    ) -> TrainingRows:
        return TrainingRows(
            schema=self.schema,
            rows=rows,
            chosen=_chosen(part, trained_on),
            n=self._persons_in(trained_on, persons),
            neighbours=self.budget.neighbours,
            part=trained_on,
            columns=columns,
            propensity_floor=self.propensity_floor,
            late_rounds=self.second_stage.rounds if self._one_regression else 0,
        )

    def _fit_nuisances(
        self, training: TrainingRows, mechanisms: Mechanisms, mu: float
    ) -> tuple[FittedNuisances, EffectStart | None]:
        fitted = self.first_stage.fit(training, self.learner.needs, mechanisms, mu)
        return FittedNuisances(self.schema, self.propensity_floor, fitted.predictors), fitted.start

    def _second_stage_problem(
        self,
        rows: Rows,
        part: np.ndarray,
        rho: np.ndarray,
        rho_phi: np.ndarray,
        persons: int,
        columns: ColumnMoments | None,
        start: EffectStart | None,
    ) -> Problem:
        used = self.split.second_stage_part
        chosen = _chosen(part, used)
        going_on = start if self.split.kind == "none" else None  # what it learned holds for its own rows
        return Problem(
            x=rows.x[chosen],
            rho=rho[chosen],
            rho_phi=rho_phi[chosen],
            treated=rows.treated[chosen],
            person=rows.person_numbers(chosen) if self.schema.max_rows_per_person > 1 else None,
            reference=reference_points(self.schema),
            n=self._persons_in(used, persons),
            span=self.schema.outcome.range,
            curvature=self.learner.curvature(going_on.treated) if going_on else self.learner.curvature(),
            multiplier=self.learner.multiplier,
            two_valued=self.schema.outcome.binary,
            neighbours=self.budget.neighbours,
            rows_per_person=self.schema.max_rows_per_person,
            part=used,
            columns=columns,
            start=going_on,
            outcome_scale=start.outcome_scale if start else None,
        )

    def _second_stage(
        self, problem: Problem, mechanisms: Mechanisms, nuisances: FittedNuisances, reserved: float
    ) -> tuple[Model, CuratorNotes | KernelOracle | None]:
        if self.calibration == "paper":
            return self._as_printed(problem, mechanisms, nuisances)
        mu = math.sqrt(max(mechanisms.accountant.gaussian_left(problem.part) ** 2 - reserved**2, 0.0))
        if isinstance(self.second_stage, Kernel):
            oracle = self.second_stage.fit_oracle(problem, mechanisms, mu, "effect")
            return (oracle.model, oracle) if self.queries is None else (self._asked(oracle, problem), None)
        return self.second_stage.fit(problem, mechanisms, mu, "effect"), None

    def _as_printed(
        self, problem: Problem, mechanisms: Mechanisms, nuisances: FittedNuisances
    ) -> tuple[Model, CuratorNotes | None]:
        warnings.warn(
            "calibration='paper' reproduces printed formulas whose privacy is unproven; do not publish its results",
            UnprovenWarning,
            stacklevel=5,
        )
        claim = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if isinstance(self.second_stage, PaperFeatures):
            return paper_function(self.second_stage, problem, mechanisms, **claim), None

        def score(x: np.ndarray, a: float, y: float, g: np.ndarray) -> np.ndarray:
            pair = self.learner.pair(np.full(len(x), a), np.full(len(x), y), x, nuisances)
            return pair.rho_phi - pair.rho * g

        outcome_range = (self.schema.outcome.low, self.schema.outcome.high)
        limits = self.learner.limits(self.propensity_floor, self.schema.outcome.range)
        return paper_queries(
            self.second_stage, problem, self.queries, score, outcome_range, limits, mechanisms, **claim
        )

    def _asked(self, oracle: KernelOracle, problem: Problem) -> PointsModel:
        """The exact answers at the declared points, with noise that is correlated between them."""
        sds = oracle.model_at(self.queries).sd(self.queries, problem.reference)
        values = oracle.effect(self.queries)
        return PointsModel(points=self.queries.tolist(), values=values.tolist(), sds=sds.tolist())

    def _reserved_for_average(self, mu: float) -> float:
        """The μ kept for the average effect; none beside a path of noise or a training that takes all that is left."""
        unknown = self.calibration == "paper" or isinstance(self.second_stage, Kernel | Network)
        return 0.0 if unknown else mu * math.sqrt(AVERAGE_SHARE)

    def _average(
        self, problem: Problem, model: Model, overlap: np.ndarray, mechanisms: Mechanisms, mu: float
    ) -> Average | None:
        if mu == 0:
            return None
        limit = self.schema.outcome.range
        effect = np.clip(model.value(problem.x), -limit, limit)
        guess = float(np.clip(model.value(problem.reference).mean(), -limit, limit))
        if isinstance(model, MomentsModel):
            guess = float(np.clip(model.coefficients[0], -limit, limit))
        average = private_average(problem, effect, overlap, guess, mechanisms, mu)
        return Average(value=average.value, sd=average.sd)

    @property
    def _diagnosis(self) -> Diagnosis:
        return Diagnosis(
            asked=self.diagnostics,
            schema=self.schema,
            learner=self.learner,
            propensity_floor=self.propensity_floor,
            neighbours=self.budget.neighbours,
        )

    def _judged(
        self, rows: Rows, part: np.ndarray, met: list[Met], model: Model, persons: int, mechanisms: Mechanisms
    ) -> dict[str, Any]:
        """What people who were held out of the fit say about the effect, if any were."""
        held_out = self.split.held_out_part
        if held_out is None:
            return {}
        apart = [Met(_chosen(part, held_out), each.nuisances) for each in met]
        return self._diagnosis.of_effect(rows, apart, model, self._persons_in(held_out, persons), held_out, mechanisms)

    def _at_queries(self, model: Model, problem: Problem) -> Model:
        """A released function, kept at the declared points only if there are any."""
        if self.queries is None or isinstance(model, PointsModel):
            return model
        values, sds = model.value(self.queries), model.sd(self.queries, problem.reference)
        return PointsModel(points=self.queries.tolist(), values=values.tolist(), sds=sds.tolist())

    def _release(
        self, mechanisms: Mechanisms, persons: int, model: Any, average: Average | None, found: dict[str, Any]
    ) -> Release:
        proven, parts = self.calibration == "proven", self.split.parts
        return Release(
            library=__version__,
            private=mechanisms.private,
            guarantee="proven" if proven else "unproven",
            proof=f"{self.second_stage.name}-release" if proven else "none",
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
                calibration=self.calibration,
            ),
            charges=[_charged(charge, parts) for charge in mechanisms.accountant.charges],
            model=model,
            average=average,
            diagnostics=Diagnostics(**found) if found else None,
        )


def _gaussian(stage: FirstStage, needs: tuple[str, ...]) -> bool:
    """Whether all that these nuisances release is Gaussian; of a stage that is not ours, nothing is known."""
    own = _own(stage)
    return isinstance(own, FeaturesNuisance | MomentsNuisance) or not own.paid(needs)


def _own(stage: FirstStage) -> FirstStage:
    """The stage that spends the budget, behind a propensity that is known."""
    return first_stage_named(stage.outcome) if isinstance(stage, KnownPropensity) else stage


def _chosen(part: np.ndarray, wanted: Part) -> np.ndarray:
    return np.arange(len(part)) if wanted is None else np.flatnonzero(np.isin(part, wanted))


def _read(part: Part, parts: int) -> str:
    """Which rows were read, for people."""
    if part is None:
        return "all rows"
    if isinstance(part, tuple):
        return f"parts {' and '.join(str(each + 1) for each in part)} of {parts}"
    return f"part {part + 1} of {parts}"


def _charged(charge: Charge, parts: int) -> ChargedMechanism:
    """A charge as a release lists it."""
    spent = {Gaussian: GaussianSpent, SampledGaussian: SampledSpent, Declared: DeclaredSpent}[type(charge.event)]
    return ChargedMechanism(
        name=charge.name,
        mechanism=charge.mechanism,
        rows=_read(charge.part, parts),
        spent=spent(**vars(charge.event)),
        sensitivity=charge.sensitivity.value if charge.sensitivity else None,
        sd=charge.sd,
        proof=charge.sensitivity.proof if charge.sensitivity else "none",
    )
