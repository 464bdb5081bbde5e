"""Stage one: private models of outcome and propensity, composed jointly within the stage's μ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dpcate.errors import InputError
from dpcate.nuisance.targets import TrainingRows, centre_of
from dpcate.privacy import Mechanisms, Shares
from dpcate.regress import EffectStart, Features
from dpcate.schema import Schema

Array = np.ndarray
Predictor = Callable[[Array], Array]

EACH_SHARE = 0.15  # of μ² for each nuisance that is paid for, when the stages share the budget


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


@dataclass(frozen=True)
class FirstFit:
    """Predictors of the needed nuisances, and what was learned of the effect on the way, if anything."""

    predictors: Mapping[str, Predictor]
    start: EffectStart | None = None


class FirstStage(Protocol):
    name: str

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Which of the needed nuisances will spend budget."""

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        """Predictors of all needed nuisances, spending at most μ."""


def share_of(stage: FirstStage, needs: tuple[str, ...]) -> float:
    """The part of μ² that the first stage gets when the stages share the budget; zero where nothing is paid for."""
    return getattr(stage, "share", EACH_SHARE * len(stage.paid(needs)))


@dataclass(frozen=True)
class FeaturesNuisance:
    """Every nuisance by a private regression of its own, the one that also serves as second stage."""

    settings: Features = field(default_factory=Features)

    @property
    def name(self) -> str:
        return self.settings.name

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        return needs

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        shares = Shares({target: 1 / len(needs) for target in needs}) if needs else {}

        def predictor(target: str) -> Predictor:
            label = target if training.part is None else f"{target} on part {training.part + 1}"
            model = self.settings.fit(
                training.problem(target), mechanisms, shares.mu(target, mu), label, interval=False
            )
            centre = centre_of(training.schema, target)
            return lambda x: centre + model.value(x)

        return FirstFit({target: predictor(target) for target in needs})


def first_stage_named(nuisance: "str | FirstStage") -> FirstStage:
    """One of the names, or an object such as `KnownPropensity(0.5)`."""
    from dpcate.nuisance.moments import MomentsNuisance
    from dpcate.nuisance.network import NetworkNuisance

    named = {"moments": MomentsNuisance, "features": FeaturesNuisance, "network": NetworkNuisance}
    if isinstance(nuisance, str) and nuisance in named:
        return named[nuisance]()
    if not isinstance(nuisance, str) and hasattr(nuisance, "paid") and hasattr(nuisance, "fit"):
        return nuisance
    raise InputError(
        "nuisance must be 'moments', 'features', 'network', or one of dpcate.KnownPropensity, KnownNuisances and "
        "SuppliedNuisances"
    )
