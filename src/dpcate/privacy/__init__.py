"""The audited core: budgets, sensitivities, mechanisms, noise and accounting.

Nothing here knows about treatments or outcomes, and nothing outside draws noise.
Read budget, sensitivity, noise, mechanisms, accounting, grant, ledger; each bound names its page in `proofs/`.
"""

from dpcate.privacy.accounting import Accountant, Charge, Declared, Gaussian, Part, SampledGaussian
from dpcate.privacy.budget import Budget, Neighbours, Shares, gdp_delta, gdp_epsilon, gdp_mu
from dpcate.privacy.grant import Account, Grant, Request
from dpcate.privacy.ledger import Charged, Granted, Ledger, granted_datasets
from dpcate.privacy.mechanisms import Mechanisms, Noisy
from dpcate.privacy.noise import NoiseSource, noise_source
from dpcate.privacy.sensitivity import Sensitivity

__all__ = [
    "Account",
    "Accountant",
    "Budget",
    "Charge",
    "Charged",
    "Declared",
    "Gaussian",
    "Grant",
    "Granted",
    "Ledger",
    "Mechanisms",
    "Neighbours",
    "NoiseSource",
    "Noisy",
    "Part",
    "Request",
    "SampledGaussian",
    "Sensitivity",
    "Shares",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "granted_datasets",
    "noise_source",
]
