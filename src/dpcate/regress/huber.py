"""The minimiser of  F(θ) = (1/n) Σ ℓᵢ(φᵢ'θ) + λ‖θ‖²,  where ℓᵢ'(g) = 2·clip(ρᵢg − ψᵢ, ±B).

Clipping the score makes the loss Huber's: quadratic while |ρg − ψ| ≤ B and linear beyond, convex, with
slope at most 2B whatever the row contains. No row is ever divided by its ρ.
"""

from collections.abc import Callable

import numpy as np


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
    """A θ with ‖∇F(θ)‖ ≤ tolerance, by Newton steps with a line search on the slope.

    F is 2λ-strongly convex with Lipschitz gradient, so Newton directions with an exact line search
    converge from anywhere; the loop ends by the certificate alone.
    """
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

        def slope(
            step: float,
            theta: np.ndarray = theta,
            scores: np.ndarray = scores,
            direction: np.ndarray = direction,
            change: np.ndarray = change,
        ) -> float:
            moved = np.clip(scores + step * rho * change, -score_bound, score_bound)
            return 2 * float(moved @ change) / n + 2 * penalty * float((theta + step * direction) @ direction)

        step = _root_of_slope(slope)
        theta = theta + step * direction
        scores = rho * (features @ theta) - psi


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
