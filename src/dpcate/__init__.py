"""dpcate: publish who benefits from a treatment, and by how much, without exposing a single patient."""

from dpcate import datasets, errors
from dpcate._version import __version__
from dpcate.estimator import PrivateCATE
from dpcate.nuisance import KnownNuisances, KnownPropensity, NetworkNuisance, Private, Public, SuppliedNuisances
from dpcate.orthogonal import Weight
from dpcate.planning import Plan, plan
from dpcate.privacy import Grant, Ledger
from dpcate.regress import Features, Kernel, KernelOracle, Moments, Network
from dpcate.release import Release
from dpcate.schema import Category, Number, Outcome, Schema, Treatment

__all__ = [
    "Category",
    "Features",
    "Grant",
    "Kernel",
    "KernelOracle",
    "KnownNuisances",
    "KnownPropensity",
    "Ledger",
    "Moments",
    "Network",
    "NetworkNuisance",
    "Number",
    "Outcome",
    "Plan",
    "Private",
    "PrivateCATE",
    "Public",
    "Release",
    "Schema",
    "SuppliedNuisances",
    "Treatment",
    "Weight",
    "__version__",
    "datasets",
    "errors",
    "plan",
]
