"""First-stage models: private regressions, and what is known without looking."""

from dpcate.nuisance.first_stage import (
    FeaturesNuisance,
    FirstFit,
    FirstStage,
    FittedNuisances,
    first_stage_named,
    share_of,
)
from dpcate.nuisance.known import KnownNuisances, KnownPropensity
from dpcate.nuisance.moments import MomentsNuisance
from dpcate.nuisance.network import NetworkNuisance
from dpcate.nuisance.supplied import Private, Public, SuppliedNuisances
from dpcate.nuisance.targets import TrainingRows

__all__ = [
    "FeaturesNuisance",
    "FirstFit",
    "FirstStage",
    "FittedNuisances",
    "KnownNuisances",
    "KnownPropensity",
    "MomentsNuisance",
    "NetworkNuisance",
    "Private",
    "Public",
    "SuppliedNuisances",
    "TrainingRows",
    "first_stage_named",
    "share_of",
]
