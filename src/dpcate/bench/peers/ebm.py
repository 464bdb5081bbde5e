"""DP-EBM meta-learners after Niu et al. 2022, on interpret's private boosting machines at their defaults.

Every model gets the covariates in the unit box with declared bounds and types, and a target that is centred on its
declared range. T: a model per arm. DR and R: propensity, outcome and effect each on a third of the rows. Rows that
disjoint models read are disjoint, so each model spends all of (ε, δ): parallel composition under add-or-remove-one, the
relation that Niu et al. use; replacing one row would count double. Pseudo-outcomes are clipped to the range in which
effects can lie.

Nominally private: interpret clips targets, but boosting adds up residuals (target minus score so far), which nothing
bounds, with noise for the range of targets.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from dpcate.bench.encoded import encoded
from dpcate.bench.peers.method import DELTA, Case, Fitted, Method
from dpcate.bench.printed import FLOOR
from dpcate.data import Rows, read_rows
from dpcate.extras import require
from dpcate.schema import Schema

Predictor = Callable[[np.ndarray], np.ndarray]


class _Boosting:
    """interpret's models for one budget and one set of declared facts."""

    def __init__(self, schema: Schema, epsilon: float, seed: int) -> None:
        self._privacy = require("interpret.privacy", "peers")
        self.outcome = schema.outcome
        self._settings = {
            "epsilon": epsilon,
            "delta": DELTA,
            "privacy_bounds": dict.fromkeys(range(schema.width), (0.0, 1.0)),
            "feature_types": ["continuous"] * schema.width,
            "random_state": seed,
            "n_jobs": 1,
        }

    def regression(self, x: np.ndarray, y: np.ndarray, low: float, high: float, weight=None) -> Predictor:
        """A private regression of a target declared to lie in [low, high]."""
        centre, half = (low + high) / 2, (high - low) / 2
        model = self._privacy.DPExplainableBoostingRegressor(
            privacy_target_min=-half, privacy_target_max=half, **self._settings
        )
        model.fit(x, np.clip(y - centre, -half, half), sample_weight=weight)
        return lambda points: centre + model.predict(points)

    def outcomes(self, x: np.ndarray, y: np.ndarray) -> Predictor:
        model = self.regression(x, y, self.outcome.low, self.outcome.high)
        return lambda points: np.clip(model(points), self.outcome.low, self.outcome.high)

    def effects(self, x: np.ndarray, pseudo: np.ndarray, weight: np.ndarray | None = None) -> Predictor:
        return self.regression(x, pseudo, -self.outcome.range, self.outcome.range, weight)

    def propensity(self, x: np.ndarray, treated: np.ndarray) -> Predictor:
        model = self._privacy.DPExplainableBoostingClassifier(**self._settings)
        model.fit(x, treated.astype(int))
        return lambda points: np.clip(model.predict_proba(points)[:, 1], FLOOR, 1 - FLOOR)


def _t(rows: Rows, boosting: _Boosting) -> Predictor:
    control, treated = (boosting.outcomes(*_arm(rows, np.arange(len(rows.x)), arm)) for arm in (0, 1))
    return lambda x: treated(x) - control(x)


def _dr(rows: Rows, boosting: _Boosting) -> Predictor:
    for_propensity, for_outcome, third = _thirds(len(rows.x))
    propensity = boosting.propensity(rows.x[for_propensity], rows.treated[for_propensity])
    control, treated = (boosting.outcomes(*_arm(rows, for_outcome, arm)) for arm in (0, 1))
    x, a, y = rows.x[third], rows.treated[third], rows.outcome[third]
    pi, mu_0, mu_1 = propensity(x), control(x), treated(x)
    residual = y - np.where(a == 1, mu_1, mu_0)
    return boosting.effects(x, (a - pi) * residual / (pi * (1 - pi)) + mu_1 - mu_0)


def _r(rows: Rows, boosting: _Boosting) -> Predictor:
    for_propensity, for_outcome, third = _thirds(len(rows.x))
    propensity = boosting.propensity(rows.x[for_propensity], rows.treated[for_propensity])
    outcome = boosting.outcomes(rows.x[for_outcome], rows.outcome[for_outcome])
    x = rows.x[third]
    w = rows.treated[third] - propensity(x)
    return boosting.effects(x, (rows.outcome[third] - outcome(x)) / w, w**2)


def _thirds(n: int) -> list[np.ndarray]:
    """By row number: the rows of a case are in random order."""
    return [np.arange(start, n, 3) for start in range(3)]


def _arm(rows: Rows, among: np.ndarray, arm: int) -> tuple[np.ndarray, np.ndarray]:
    chosen = among[rows.treated[among] == arm]
    return rows.x[chosen], rows.outcome[chosen]


def _fit(case: Case, epsilon: float, seed: int, *, learner: Callable[[Rows, _Boosting], Predictor]) -> Fitted:
    schema, train = case.train.schema, case.train
    effect = learner(read_rows(schema, train.Y, train.T, train.X), _Boosting(schema, epsilon, seed))
    limit = schema.outcome.range
    return Fitted(lambda points: np.clip(effect(encoded(schema, points)), -limit, limit))


EBM = tuple(
    Method(
        name=f"ebm-{name}",
        title=f"DP-EBM {name.upper()}-learner",
        role="peer",
        private=True,
        guarantee="nominal: residuals are unclipped",
        library="interpret-core",
        code=("bench/peers/ebm.py",),
        fit=partial(_fit, learner=learner),
        no_interval="none: DP-EBM has none",
        note="after Niu et al. 2022; budget under add-or-remove-one",
    )
    for name, learner in (("t", _t), ("dr", _dr), ("r", _r))
)
