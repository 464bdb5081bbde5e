"""The minimiser of  F(θ) = (1/n) Σ ℓᵢ(φᵢ'θ) + λ‖θ‖²,  where ℓᵢ'(g) = 2·clip(ρᵢg − ψᵢ, ±B).

Clipping the score makes the loss Huber's: quadratic while |ρg − ψ| ≤ B and linear beyond, convex, with
slope at most 2B whatever the row contains. No row is ever divided by its ρ.

F is 2λ-strongly convex with Lipschitz gradient, so Newton directions with an exact line search converge from
anywhere; both loops end by the certificate ‖∇F(θ)‖ ≤ tolerance alone.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve


def huber_minimiser(
    features: np.ndarray,
    rho: np.ndarray,
    psi: np.ndarray,
    *,
    n: float,
    score_bound: float,
    penalty: float,
    tolerance: float,
) -> np.ndarray:
    """θ itself, for a matrix with the φᵢ as rows."""
    theta = np.zeros(features.shape[1])
    scores = -psi
    while True:
        clipped = np.clip(scores, -score_bound, score_bound)
        gradient = 2 * (features.T @ clipped) / n + 2 * penalty * theta
        if np.linalg.norm(gradient) <= tolerance:
            return theta
        active = np.where(np.abs(scores) <= score_bound, rho, 0.0)
        hessian = 2 * (features.T * active) @ features / n
        hessian[np.diag_indices_from(hessian)] += 2 * penalty
        direction = -np.linalg.solve(hessian, gradient)
        change = features @ direction
        along, squared = float(theta @ direction), float(direction @ direction)
        step = _root_of_slope(_slope(scores, rho, change, n, score_bound, penalty * along, penalty * squared))
        theta = theta + step * direction
        scores = rho * (features @ theta) - psi


def huber_coefficients(
    gram: np.ndarray,
    rho: np.ndarray,
    psi: np.ndarray,
    *,
    n: float,
    score_bound: float,
    penalty: float,
    tolerance: float,
) -> np.ndarray:
    """α with θ = Σ αᵢφᵢ, for as many features as rows that are known by their inner products G alone.

    With v = clip(scores)/n + λα, half the gradient is Σ vᵢφᵢ, so its norm is √(v'Gv). The Newton direction Σ dᵢφᵢ
    solves (DG/n + λI)d = −v, where D holds the ρ of the rows that are not clipped. With d = −v/λ + √D u it is
    (√D G √D/n + λI)u = √D Gv/(λn): one Cholesky factor of the size of the rows that are not clipped.
    """
    alpha = np.zeros(len(gram))
    while True:
        g = gram @ alpha
        scores = rho * g - psi
        v = np.clip(scores, -score_bound, score_bound) / n + penalty * alpha
        spread = gram @ v
        if 2 * np.sqrt(_above_rounding(v, spread)) <= tolerance:
            return alpha
        active = np.flatnonzero((np.abs(scores) <= score_bound) & (rho > 0))
        root = np.sqrt(rho[active])
        system = gram[np.ix_(active, active)]
        system *= root
        system *= root[:, None] / n
        system[np.diag_indices_from(system)] += penalty
        factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)  # transposed: not copied
        direction = -v / penalty
        direction[active] += root * cho_solve(factor, root * spread[active] / (penalty * n), check_finite=False)
        change = gram @ direction
        along, squared = float(g @ direction), float(change @ direction)
        step = _root_of_slope(_slope(scores, rho, change, n, score_bound, penalty * along, penalty * squared))
        alpha = alpha + step * direction


def _above_rounding(v: np.ndarray, spread: np.ndarray) -> float:
    """v'Gv for a unit diagonal, with a hair more than rounding could hide."""
    return max(float(v @ spread), 0.0) + len(v) * np.finfo(float).eps * float(np.abs(v).sum()) ** 2


def _slope(
    scores: np.ndarray,
    rho: np.ndarray,
    change: np.ndarray,
    n: float,
    score_bound: float,
    penalty_slope: float,
    penalty_bend: float,
) -> Callable[[float], float]:
    """F' along a direction that changes g by `change`; the penalty's part is linear in the step."""

    def slope(step: float) -> float:
        moved = np.clip(scores + step * rho * change, -score_bound, score_bound)
        return 2 * float(moved @ change) / n + 2 * (penalty_slope + step * penalty_bend)

    return slope


def _root_of_slope(slope: Callable[[float], float]) -> float:
    """A step at which a convex function along a descent direction has nearly stopped falling.

    The full Newton step if its slope is within a tenth of the initial one, else by bisection.
    """
    enough = -0.1 * slope(0.0)
    low, high = 0.0, 1.0
    while slope(high) < -enough:
        low, high = high, 2 * high
    step, here = high, slope(high)
    while abs(here) > enough and high - low > 1e-15 * high:
        step = (low + high) / 2
        here = slope(step)
        low, high = (step, high) if here < 0 else (low, step)
    return step
