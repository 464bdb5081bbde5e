"""First-stage models: private regressions, and what is known without looking."""

from dpcate.nuisance.first_stage import FirstStage, FittedNuisances, RegressionNuisance, first_stage_named
from dpcate.nuisance.known import KnownNuisances, KnownPropensity
from dpcate.nuisance.network import NetworkNuisance
from dpcate.nuisance.supplied import Private, Public, SuppliedNuisances
from dpcate.nuisance.targets import TrainingRows

__all__ = [
    "FirstStage",
    "FittedNuisances",
    "KnownNuisances",
    "KnownPropensity",
    "NetworkNuisance",
    "Private",
    "Public",
    "RegressionNuisance",
    "SuppliedNuisances",
    "TrainingRows",
    "first_stage_named",
]
