"""First-stage models: private regressions, and what is known without looking."""

from dpcate.nuisance.first_stage import FeaturesNuisance, FirstStage, FittedNuisances, first_stage_named
from dpcate.nuisance.known import KnownNuisances, KnownPropensity

__all__ = [
    "FeaturesNuisance",
    "FirstStage",
    "FittedNuisances",
    "KnownNuisances",
    "KnownPropensity",
    "first_stage_named",
]
