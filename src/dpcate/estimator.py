"""PrivateCATE: the names that scripts rely on. What a fit does, arrow by arrow, is in pipeline.py."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from sklearn.base import BaseEstimator

from dpcate.data import Split, SplitKind, read_rows
from dpcate.diagnostics import chosen
from dpcate.encoding import encode_covariates
from dpcate.errors import InputError
from dpcate.nuisance import FirstStage, first_stage_named
from dpcate.orthogonal import Learner, learner_named
from dpcate.paper import PaperFeatures, PaperKernel, PaperNetwork
from dpcate.pipeline import Pipeline, Progress
from dpcate.privacy import Budget, Ledger, noise_source
from dpcate.regress import Kernel, SecondStage, second_stage_named
from dpcate.release import Release
from dpcate.schema import Schema
from dpcate.spending import Bill
from dpcate.tables import as_columns

PAPER_STAGES = {"features": PaperFeatures, "kernel": PaperKernel, "network": PaperNetwork}


class PrivateCATE(BaseEstimator):
    """Who benefits from a treatment, and by how much, under (ε, δ)-differential privacy.

    Formal guarantee: for any two neighbouring tables, and every schema, `release_` is (ε, δ)-DP for one
    person (at most `schema.max_rows_per_person` rows), by the proof page that the release names, unless
    `random_state` is set, which makes the noise reproducible and the release say `private: false`.
    Everything computed from `release_` afterwards is free.

    `kept_` is what stays with the curator: with second_stage="kernel" the `KernelOracle` that answers any number of
    further questions exactly, with calibration="paper" notes that depend on rows, else None.

    Parameters
    ----------
    schema : the public facts; nothing is inferred from rows.
    epsilon, delta : the budget of the whole fit.
    learner : "r", "dr" or a `Weight`.
    second_stage : "moments", "features", "kernel" or "network", or `Moments`, `Features`, `Kernel`, `Network` settings.
    nuisance : "moments", "features" or "network", `KnownPropensity`, `KnownNuisances` or `SuppliedNuisances`.
    split : "none", "crossfit" or "disjoint".
    neighbours : "replace-one" or "add-or-remove-one".
    propensity_floor : propensities are clipped to [floor, 1 − floor].
    calibration : "proven"; "paper" is the paper's printed noise, for comparison only: no proof covers it.
    queries : None for the whole function; public points for effects at those points only.
    diagnostics : names out of "overlap", "outcome", "heterogeneity" and "calibration", each paid for by the fit.
    ledger : None, or a `Ledger` to which every fit is charged before its first noise, and which may refuse it.
    random_state : None for private noise; an integer for reproducible noise without privacy.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        learner: str | Learner = "r",
        second_stage: str | SecondStage = "moments",
        nuisance: str | FirstStage = "moments",
        split: str = "none",
        neighbours: str = "replace-one",
        propensity_floor: float = 0.05,
        calibration: str = "proven",
        queries: Any = None,
        diagnostics: Sequence[str] = (),
        ledger: Ledger | None = None,
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
        self.calibration = calibration
        self.queries = queries
        self.diagnostics = diagnostics
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
        plan = plan_of(self)
        bill = Bill(self.ledger, plan.request)
        bill.require()
        report = progress or (lambda stage, done: None)
        report("reading rows", 0.0)
        rows = read_rows(plan.schema, Y, T, X, table)
        executed = plan.execute(rows, report, bill.charge)
        self.release_, self.kept_ = executed.release, executed.kept
        bill.record(self.release_)
        return self

    def effect(self, X: Any) -> np.ndarray:
        """The private effect at each row of X: post-processing, free."""
        return self._release().effect(X)

    def effect_interval(
        self, X: Any, alpha: float = 0.1, *, simultaneous: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) at level 1 − alpha, at each row of X or, if simultaneous, at all of them together."""
        return self._release().effect_interval(X, alpha, simultaneous=simultaneous)

    def ate(self, X: Any = None) -> float:
        """The effect averaged over the private population (paid for by the fit), or over public rows X."""
        return self._release().ate(X)

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """(low, high) at level 1 − alpha for the average effect over the private population."""
        return self._release().ate_interval(alpha)

    def _release(self) -> Release:
        if not hasattr(self, "release_"):
            raise InputError("nothing has been fitted yet: call fit first")
        return self.release_


def plan_of(estimator: PrivateCATE) -> Pipeline:
    """Check every parameter; nothing of a row is known yet."""
    if not isinstance(estimator.schema, Schema):
        raise InputError("schema must be a dpcate.Schema; dpcate.Schema.load reads one from a TOML file")
    if estimator.split not in get_args(SplitKind):
        raise InputError(f"split must be one of {', '.join(get_args(SplitKind))}")
    floor = estimator.propensity_floor
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor < 0.5:
        raise InputError("propensity_floor must lie above 0 and below 0.5; 0.05 is a common choice")
    if estimator.ledger is not None and (estimator.random_state is not None or estimator.calibration != "proven"):
        raise InputError("a ledger pays for private fits only: leave out random_state and calibration, or the ledger")
    noise_source(estimator.random_state)
    asked = chosen(estimator.diagnostics)
    pipeline = Pipeline(
        schema=estimator.schema,
        budget=Budget(epsilon=estimator.epsilon, delta=estimator.delta, neighbours=estimator.neighbours),
        learner=learner_named(estimator.learner),
        second_stage=_second_stage(estimator),
        first_stage=first_stage_named(estimator.nuisance),
        split=Split(estimator.split, held_out=asked.held_out),
        propensity_floor=float(floor),
        calibration=estimator.calibration,
        queries=_encoded_queries(estimator.schema, estimator.queries),
        random_state=estimator.random_state,
        diagnostics=asked,
    )
    _require_diagnosable(pipeline)
    pipeline.first_stage.paid(pipeline.learner.needs)
    return pipeline


def _second_stage(estimator: PrivateCATE) -> SecondStage | PaperFeatures | PaperKernel | PaperNetwork:
    if estimator.calibration == "proven":
        return second_stage_named(estimator.second_stage)
    if estimator.calibration != "paper":
        raise InputError("calibration must be 'proven' or 'paper'")
    if estimator.neighbours != "replace-one":
        raise InputError("calibration='paper' is stated for neighbours='replace-one' only")
    if estimator.split == "crossfit":
        raise InputError("calibration='paper' needs split='disjoint', as in the paper, or 'none'")
    stage = PAPER_STAGES.get(estimator.second_stage, lambda: estimator.second_stage)()
    if not isinstance(stage, tuple(PAPER_STAGES.values())):
        raise InputError("with calibration='paper', second_stage must be 'features', 'kernel' or 'network'")
    if estimator.queries is None and not isinstance(stage, PaperFeatures):
        raise InputError("calibration='paper' with this second stage needs queries=..., a finite set of points")
    return stage


def _require_diagnosable(pipeline: Pipeline) -> None:
    """Diagnostics need a proof, and judge a function wherever people are."""
    asked = pipeline.diagnostics
    if asked.names and pipeline.calibration != "proven":
        raise InputError("diagnostics are for private fits: leave them out with calibration='paper'")
    if asked.held_out and pipeline.queries is not None and isinstance(pipeline.second_stage, Kernel):
        raise InputError(
            f"{' and '.join(asked.on_held_out)} need the effect of everybody, which second_stage='kernel' with queries "
            "does not give: leave out the queries or these diagnostics"
        )


def _encoded_queries(schema: Schema, queries: Any) -> np.ndarray | None:
    if queries is None:
        return None
    encoded, present = encode_covariates(schema, as_columns(queries, list(schema.covariates)))
    if len(encoded) == 0 or not present.all():
        raise InputError("queries must be at least one point, each with a usable value for every covariate")
    return encoded
