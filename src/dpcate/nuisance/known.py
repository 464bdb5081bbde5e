"""Nuisances that are known without looking at the rows, and therefore cost nothing."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dpcate.encoding import decode_covariates
from dpcate.errors import InputError
from dpcate.nuisance.first_stage import FirstFit, FirstStage, Predictor, first_stage_named, share_of
from dpcate.nuisance.targets import TrainingRows
from dpcate.privacy import Mechanisms
from dpcate.schema import Schema

Columns = Mapping[str, np.ndarray]
KnownFunction = Callable[[Columns], np.ndarray]


@dataclass(frozen=True)
class KnownPropensity:
    """The treatment probability of a randomised trial: a number, or a public function of the covariates.

    The function receives the covariates by name, in the units of the schema. The outcome is still modelled
    privately, by `outcome`.
    """

    probability: float | KnownFunction
    outcome: "str | FirstStage" = "moments"

    def __post_init__(self) -> None:
        constant = not callable(self.probability)
        if constant and not (isinstance(self.probability, int | float) and 0 < self.probability < 1):
            raise InputError("a known propensity must lie strictly between 0 and 1, or be a function of the covariates")

    @property
    def name(self) -> str:
        return f"known propensity, outcome by {first_stage_named(self.outcome).name}"

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        return first_stage_named(self.outcome).paid(_without_propensity(needs))

    @property
    def share(self) -> float:
        return share_of(first_stage_named(self.outcome), ("outcome",))

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        known = _predictor(training.schema, self.probability)
        aware = dataclasses.replace(training, propensity=known)
        fitted = first_stage_named(self.outcome).fit(aware, _without_propensity(needs), mechanisms, mu)
        return FirstFit({**fitted.predictors, "propensity": known}, fitted.start)


@dataclass(frozen=True, kw_only=True)
class KnownNuisances:
    """Nuisances from public data or from a simulation's truth: public functions of the covariates.

    The R-learner needs `outcome` (E[Y|x]); other learners need `outcome_control` and `outcome_treated`.
    They must not have been fitted on the private rows: the promise rests on it, and nothing here can check it.
    """

    propensity: float | KnownFunction
    outcome: KnownFunction | None = None
    outcome_control: KnownFunction | None = None
    outcome_treated: KnownFunction | None = None

    name = "known"

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        missing = [target for target in needs if getattr(self, target) is None]
        if missing:
            raise InputError(f"this learner needs KnownNuisances to give {', '.join(missing)}")
        return ()

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        return FirstFit({target: _predictor(training.schema, getattr(self, target)) for target in needs})


def _without_propensity(needs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(target for target in needs if target != "propensity")


def _predictor(schema: Schema, known: float | KnownFunction) -> Predictor:
    def predict(x: np.ndarray) -> np.ndarray:
        values = known(decode_covariates(schema, x)) if callable(known) else known
        finite = np.nan_to_num(np.asarray(values, dtype=float), nan=0.0)
        return np.broadcast_to(finite, (len(x),))

    return predict
