"""Stage one: private models of outcome and propensity, composed jointly within the stage's μ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcate.errors import InputError
from dpcate.nuisance.targets import TrainingRows, centre_of
from dpcate.privacy import Mechanisms, Shares
from dpcate.regress import Features, Moments
from dpcate.schema import Schema

Array = np.ndarray
Predictor = Callable[[Array], Array]

PROPENSITY_WEIGHT = 0.4  # its share of a stage of moments, next to one for each outcome model


@dataclass(frozen=True)
class FittedNuisances:
    """Predictions clipped to their public ranges; clipping is post-processing of private models."""

    schema: Schema
    propensity_floor: float
    predictors: Mapping[str, Predictor]

    def propensity(self, x: Array) -> Array:
        return np.clip(self.predictors["propensity"](x), self.propensity_floor, 1 - self.propensity_floor)

    def outcome(self, x: Array) -> Array:
        return self._outcome("outcome", x)

    def outcome_by_arm(self, x: Array) -> tuple[Array, Array]:
        return self._outcome("outcome_control", x), self._outcome("outcome_treated", x)

    def _outcome(self, target: str, x: Array) -> Array:
        return np.clip(self.predictors[target](x), self.schema.outcome.low, self.schema.outcome.high)


class FirstStage(Protocol):
    name: str

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Which of the needed nuisances will spend budget."""

    def fit(
        self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float
    ) -> Mapping[str, Predictor]:
        """Predictors of all needed nuisances, spending at most μ."""


@dataclass(frozen=True)
class RegressionNuisance:
    """Every nuisance by a private regression that also serves as second stage."""

    settings: Features | Moments

    @property
    def name(self) -> str:
        return self.settings.name

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        return needs

    def fit(
        self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float
    ) -> Mapping[str, Predictor]:
        propensity = PROPENSITY_WEIGHT if isinstance(self.settings, Moments) else 1.0
        weights = {target: propensity if target == "propensity" else 1.0 for target in needs}
        total = sum(weights.values())
        shares = Shares({target: weight / total for target, weight in weights.items()}) if needs else {}

        def predictor(target: str) -> Predictor:
            label = target if training.part is None else f"{target} on part {training.part + 1}"
            model = self.settings.fit(
                training.problem(target), mechanisms, shares.mu(target, mu), label, interval=False
            )
            centre = centre_of(training.schema, target)
            return lambda x: centre + model.value(x)

        return {target: predictor(target) for target in needs}


def first_stage_named(nuisance: "str | FirstStage") -> FirstStage:
    """One of the names, or an object such as `KnownPropensity(0.5)`."""
    from dpcate.nuisance.network import NetworkNuisance

    if nuisance == "network":
        return NetworkNuisance()
    regressions = {"moments": Moments, "features": Features}
    if isinstance(nuisance, str) and nuisance in regressions:
        return RegressionNuisance(regressions[nuisance]())
    if not isinstance(nuisance, str) and hasattr(nuisance, "paid") and hasattr(nuisance, "fit"):
        return nuisance
    raise InputError(
        "nuisance must be 'moments', 'features', 'network', or one of dpcate.KnownPropensity, KnownNuisances and "
        "SuppliedNuisances"
    )
