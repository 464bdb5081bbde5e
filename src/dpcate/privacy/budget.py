"""What may be spent: (ε, δ) for one person, its Gaussian equivalent μ, and the shares it is cut into.

A mechanism is μ-GDP when telling neighbours apart is at least as hard as telling N(0,1) from N(μ,1).
Its exact trade-off is  δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),  valid for every ε (proofs/gaussian.md).
Squares of μ add up under composition, so a budget is cut into shares of μ².
"""

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from scipy.optimize import brentq
from scipy.special import log_ndtr

from dpcate.errors import InputError

Neighbours = Literal["replace-one", "add-or-remove-one"]

_LOG_MU_RANGE = (math.log(1e-12), math.log(1e4))


def gdp_delta(mu: float, epsilon: float) -> float:
    """The smallest δ for which a μ-GDP release is (ε, δ)-DP."""
    if mu == 0.0:
        return 0.0
    log_kept = float(log_ndtr(mu / 2 - epsilon / mu))
    log_lost = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return max(0.0, -math.expm1(log_lost - log_kept) * math.exp(log_kept))


def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 for which a μ-GDP release is (ε, δ)-DP."""
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    above = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1.0
    return float(brentq(lambda epsilon: gdp_delta(mu, epsilon) - delta, 0.0, above, xtol=1e-14, rtol=1e-13))


@functools.lru_cache(maxsize=1024)
def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest μ whose releases are (ε, δ)-DP: the analytic Gaussian calibration of Balle and Wang."""
    log_mu = brentq(lambda log: gdp_delta(math.exp(log), epsilon) - delta, *_LOG_MU_RANGE, xtol=1e-13)
    return math.exp(float(log_mu) - 1e-12)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """(ε, δ) for one person, under a neighbour relation."""

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        _require_real("epsilon", self.epsilon)
        _require_real("delta", self.delta)
        if not 0 < self.epsilon <= 100:
            raise InputError("epsilon must lie above 0 and at most 100; 1 is a common choice")
        if not 1e-100 <= self.delta < 1:
            raise InputError("delta must lie above 0 (at least 1e-100) and below 1; choose well below 1/n, say 1e-6")
        if gdp_delta(math.exp(_LOG_MU_RANGE[0]), self.epsilon) >= self.delta:
            raise InputError("epsilon and delta are both so small that nothing could be released; raise one of them")
        if self.neighbours not in get_args(Neighbours):
            raise InputError(f"neighbours must be one of {', '.join(get_args(Neighbours))}")

    @property
    def mu(self) -> float:
        return gdp_mu(self.epsilon, self.delta)


@dataclass(frozen=True)
class Shares(Mapping[str, float]):
    """Named fractions of μ² that together spend all of it, no more and no less."""

    fractions: Mapping[str, float]

    def __post_init__(self) -> None:
        if not all(math.isfinite(fraction) and fraction > 0 for fraction in self.fractions.values()):
            raise InputError("every share of the budget must be a positive number")
        if abs(math.fsum(self.fractions.values()) - 1.0) > 1e-9:
            raise InputError("the shares of a budget must sum to one")

    def __getitem__(self, name: str) -> float:
        return self.fractions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fractions)

    def __len__(self) -> int:
        return len(self.fractions)

    def mu(self, name: str, total: float) -> float:
        """The μ that `name` may spend out of a total μ."""
        return total * math.sqrt(self.fractions[name])


def _require_real(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number")
