"""Nuisances by anybody's model, as long as it declares the privacy that it spends.

A model is any object with `fit(X, y)` and `predict(X)` or `predict_proba(X)`; X is the encoded covariates in the
unit box. Wrap it in `Private(...)` to declare what its `fit` spends, or in `Public(model)` if it was trained on public
data and only predicts. A bare model declares nothing and is refused.
"""

import copy
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcate.errors import InputError
from dpcate.nuisance.first_stage import FirstFit, Predictor
from dpcate.nuisance.targets import TrainingRows, centre_of
from dpcate.privacy import Declared, Mechanisms, Neighbours


@dataclass(frozen=True, kw_only=True)
class Private:
    """A model whose `fit` is (ε, δ)-DP under `neighbours`, by its maker's word, which the promise then rests on."""

    model: Any
    epsilon: float
    delta: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        _require_methods(self.model, "fit")
        if not (math.isfinite(self.epsilon) and self.epsilon > 0 and 0 <= self.delta < 1):
            raise InputError("a private model must declare epsilon above 0 and delta from 0 to below 1")
        if self.neighbours not in ("replace-one", "add-or-remove-one"):
            raise InputError("a private model must declare its neighbours: replace-one or add-or-remove-one")

    def spends(self, target: str, neighbours: Neighbours) -> Declared:
        """The guarantee under the estimator's relation: replacing is removing and adding.

        Rows of one arm change in number when a replaced row changes arms, so a model of one arm needs a guarantee
        under add-or-remove-one.
        """
        one_arm = target in ("outcome_control", "outcome_treated")
        if self.neighbours == "replace-one" and (neighbours == "add-or-remove-one" or one_arm):
            raise InputError(f"the model for {target} needs a guarantee under add-or-remove-one")
        if self.neighbours == neighbours:
            return Declared(self.epsilon, self.delta)
        return Declared(2 * self.epsilon, self.delta * (1 + math.exp(self.epsilon)))

    def predictor(self, x: np.ndarray, y: np.ndarray) -> Predictor:
        model = copy.deepcopy(self.model)
        model.fit(x, y)
        return _predictor(model)


@dataclass(frozen=True)
class Public:
    """A model that was trained on public data: it spends nothing, and its `fit` is never called."""

    model: Any

    def __post_init__(self) -> None:
        _require_methods(self.model)


@dataclass(frozen=True, kw_only=True)
class SuppliedNuisances:
    """One declared model per nuisance: `outcome` for the R-learner, one per arm for the others."""

    propensity: Private | Public
    outcome: Private | Public | None = None
    outcome_control: Private | Public | None = None
    outcome_treated: Private | Public | None = None

    name = "supplied"

    def __post_init__(self) -> None:
        for target in ("propensity", "outcome", "outcome_control", "outcome_treated"):
            if not isinstance(getattr(self, target), Private | Public | None):
                raise InputError(
                    f"the model for {target} declares no privacy: wrap it in dpcate.Private(model=..., epsilon=..., "
                    "delta=..., neighbours=...), or in dpcate.Public(model) if it never saw a private row"
                )

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        missing = [target for target in needs if getattr(self, target) is None]
        if missing:
            raise InputError(f"this learner needs SuppliedNuisances to give {', '.join(missing)}")
        return tuple(target for target in needs if isinstance(getattr(self, target), Private))

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        if training.schema.max_rows_per_person > 1 and self.paid(needs):
            raise InputError("supplied private models protect single rows; they need max_rows_per_person = 1")
        for target in self.paid(needs):
            spent = getattr(self, target).spends(target, training.neighbours)
            mechanisms.external(f"{target} by a supplied model", spent, part=training.part)
        return FirstFit({target: self._predictor(target, training) for target in needs})

    def _predictor(self, target: str, training: TrainingRows) -> Predictor:
        declared = getattr(self, target)
        if isinstance(declared, Public):
            return _predictor(declared.model)
        problem = training.problem(target)
        x, y = problem.x, problem.rho_phi + centre_of(training.schema, target)
        if target in ("outcome_control", "outcome_treated"):
            x, y = x[problem.rho > 0], y[problem.rho > 0]
        centre = centre_of(training.schema, target)
        return _fitted(declared, x, np.round(y) if target == "propensity" else y, centre)


def _fitted(declared: Private, x: np.ndarray, y: np.ndarray, centre: float) -> Predictor:
    """Foreign code may fail on single rows; that must not decide whether a release appears, so a constant steps in."""
    try:
        return declared.predictor(x, y)
    except Exception:
        constant = centre
    warnings.warn("a supplied model failed to fit and a constant took its place; keep this to yourself", stacklevel=2)
    return lambda x: np.full(len(x), constant)


def _predictor(model: Any) -> Predictor:
    def predict(x: np.ndarray) -> np.ndarray:
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(x), dtype=float)[:, -1]
        return np.asarray(model.predict(x), dtype=float).reshape(len(x))

    return predict


def _require_methods(model: Any, *names: str) -> None:
    if not all(callable(getattr(model, name, None)) for name in names) or not (
        callable(getattr(model, "predict", None)) or callable(getattr(model, "predict_proba", None))
    ):
        raise InputError("a supplied model needs fit(X, y), and predict(X) or predict_proba(X)")
