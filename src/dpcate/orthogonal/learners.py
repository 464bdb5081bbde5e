"""The weighted orthogonal loss  ρ(a, π)·(φ − g(x))²  of the paper's equation 3, without ever dividing by ρ.

With a weight function λ(π),  ρ = (a − π)λ'(π) + λ(π)  and
    ρφ = λ(π)(a − π)(y − μ(x, a)) / (π(1 − π)) + ρ·(μ(x, 1) − μ(x, 0)).
Half the derivative of the loss in g is ρg − ρφ, so the pair (ρ, ρφ) is all that a second stage needs.

- `R`: λ = π(1 − π), so ρ = (a − π)² and ρφ = (a − π)(y − m(x)); needs only m and π.
- `DR`: λ = 1, so ρ = 1 and ρφ = φ.
- `Weight`: any other λ, given with its derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcate.errors import InputError

Array = np.ndarray
_GRID = np.linspace(0.001, 0.999, 999)


@dataclass(frozen=True)
class OrthogonalPair:
    """ρ and ρφ of each row, and `overlap`, its λ(π): what ρ is on average over the arms."""

    rho: Array
    rho_phi: Array
    overlap: Array

    def __repr__(self) -> str:
        return "<OrthogonalPair: sealed>"


class Nuisances(Protocol):
    """Private (or known) models of the covariates; every prediction is clipped to its public range."""

    def propensity(self, x: Array) -> Array: ...

    def outcome(self, x: Array) -> Array: ...

    def outcome_by_arm(self, x: Array) -> tuple[Array, Array]: ...


class Learner(Protocol):
    name: str
    needs: tuple[str, ...]

    def curvature(self, propensity: float = 0.5) -> float:
        """λ(π), ρ averaged over the arms: how much a typical row weighs."""

    @property
    def multiplier(self) -> float:
        """How a unit of y − μ enters ρφ at π = 1/2."""

    def limits(self, floor: float, span: float) -> tuple[float, float]:
        """The largest ρ and |ρφ| of any row, for propensities at least `floor` from 0 and 1."""

    def pair(self, treated: Array, outcome: Array, x: Array, nuisances: Nuisances) -> OrthogonalPair: ...


@dataclass(frozen=True)
class R:
    name: str = "r"
    needs: tuple[str, ...] = ("outcome", "propensity")
    multiplier: float = 0.5

    def curvature(self, propensity: float = 0.5) -> float:
        return propensity * (1 - propensity)

    def limits(self, floor: float, span: float) -> tuple[float, float]:
        return (1 - floor) ** 2, (1 - floor) * span

    def pair(self, treated: Array, outcome: Array, x: Array, nuisances: Nuisances) -> OrthogonalPair:
        pi = nuisances.propensity(x)
        w = treated - pi
        return OrthogonalPair(w * w, w * (outcome - nuisances.outcome(x)), pi * (1 - pi))


@dataclass(frozen=True)
class Weight:
    """λ(π) and λ'(π), both vectorised; λ > 0 and ρ ≥ 0 on (0, 1) are checked, and so is the derivative."""

    name: str
    weight: Callable[[Array], Array]
    derivative: Callable[[Array], Array]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError("a weight needs a name, for the release to state")
        weight, derivative = self._on(self.weight), self._on(self.derivative)
        if not (np.isfinite(weight).all() and np.isfinite(derivative).all() and (weight > 0).all()):
            raise InputError(f"the weight '{self.name}' must be positive and finite for propensities in (0, 1)")
        step = 1e-6
        slope = (self._on(self.weight, step) - self._on(self.weight, -step)) / (2 * step)
        if not np.allclose(slope, derivative, rtol=1e-4, atol=1e-4 * np.abs(derivative).max() + 1e-9):
            raise InputError(f"the derivative given for the weight '{self.name}' is not its derivative")
        scale = weight.max()
        for arm in (0.0, 1.0):
            if (self._rho(arm, _GRID) < -1e-9 * scale).any():
                raise InputError(
                    f"the weight '{self.name}' makes the loss weight negative in one arm; "
                    "choose a weight with (a - p) * derivative + weight >= 0 for a = 0 and a = 1"
                )

    needs = ("outcome_control", "outcome_treated", "propensity")

    def curvature(self, propensity: float = 0.5) -> float:
        return float(self.weight(np.array([propensity]))[0])

    @property
    def multiplier(self) -> float:
        return 2 * float(self.weight(np.array([0.5]))[0])

    def limits(self, floor: float, span: float) -> tuple[float, float]:
        """|ρφ| ≤ max(λ/π, ρ)·R in the treated arm and max(λ/(1−π), ρ)·R in the other: linear in each μ."""
        pi = np.linspace(floor, 1 - floor, 1001)
        rho = np.array([self._rho(arm, pi) for arm in (0.0, 1.0)])
        pull = self.weight(pi) / np.array([1 - pi, pi])
        return float(rho.max()), float(np.maximum(rho, pull).max()) * span

    def pair(self, treated: Array, outcome: Array, x: Array, nuisances: Nuisances) -> OrthogonalPair:
        pi = nuisances.propensity(x)
        mu0, mu1 = nuisances.outcome_by_arm(x)
        rho = np.maximum(self._rho(treated, pi), 0.0)
        residual = outcome - np.where(treated == 1, mu1, mu0)
        correction = self.weight(pi) * (treated - pi) / (pi * (1 - pi)) * residual
        return OrthogonalPair(rho, correction + rho * (mu1 - mu0), self.weight(pi))

    def _rho(self, treated: Array | float, pi: Array) -> Array:
        return (treated - pi) * self.derivative(pi) + self.weight(pi)

    def _on(self, function: Callable[[Array], Array], shift: float = 0.0) -> Array:
        values = np.asarray(function(_GRID + shift), dtype=float)
        return np.broadcast_to(values, _GRID.shape)


DR = Weight("dr", weight=np.ones_like, derivative=np.zeros_like)


def learner_named(learner: "str | Learner") -> Learner:
    """ "r", "dr", or a `Weight`."""
    if isinstance(learner, R | Weight):
        return learner
    named = {"r": R(), "dr": DR}
    if isinstance(learner, str) and learner in named:
        return named[learner]
    raise InputError("learner must be 'r', 'dr' or a dpcate.Weight(name, weight, derivative)")
