"""Corollary 1: a smooth network fitted to the orthogonal loss, and its influence function.

θ̂ = argmin (1/n) Σ ρᵢ(φᵢ − g(xᵢ; θ))² + λ‖θ‖². With H the Hessian of that objective (damped by `damping`),
    IF(z) = J(x_q) H⁻¹ [2(ρφ − ρĝ(x)) ∇g(x) − 2λθ̂].
The Hessian of a network is indefinite in general, so damping turns the "sensitivity" into a knob: no privacy claim
can rest on it. It exists to compare with the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dpcate.errors import InputError

HESSIAN_COLUMNS = 32  # computed at once


@dataclass(frozen=True)
class SmoothNetwork:
    """A fitted network; θ̂ was computed without noise, so it stays on the curator's side."""

    sizes: tuple[int, ...]
    theta: np.ndarray
    hessian: np.ndarray
    penalty: float

    def __repr__(self) -> str:
        return "<SmoothNetwork: sealed>"

    @classmethod
    def fit(
        cls,
        x: np.ndarray,
        rho: np.ndarray,
        rho_phi: np.ndarray,
        *,
        n: float,
        hidden: tuple[int, ...] = (32, 32),
        penalty: float = 1e-3,
        damping: float = 1e-2,
        steps: int = 500,
    ) -> "SmoothNetwork":
        """Full-batch L-BFGS from a public start, then one exact Hessian."""
        jax = require_jax()
        sizes = (x.shape[1], *hidden, 1)
        objective = _objective(sizes, x, rho, rho_phi, n, penalty)
        with jax.enable_x64(True):
            value_and_gradient = jax.jit(jax.value_and_grad(objective))
            start = _public_start(sizes)
            fitted = minimize(
                lambda theta: tuple(np.asarray(part, dtype=float) for part in value_and_gradient(theta)),
                start,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "gtol": 1e-12},
            )
            hessian = np.asarray(_hessian(objective, fitted.x))
        return cls(sizes, fitted.x, hessian + damping * np.eye(len(start)), penalty)

    def value(self, points: np.ndarray) -> np.ndarray:
        with require_jax().enable_x64(True):
            return np.asarray(_compiled(self.sizes)[0](self.theta, points))

    def jacobian(self, points: np.ndarray) -> np.ndarray:
        """∇g(x; θ̂), one row per point."""
        with require_jax().enable_x64(True):
            return np.asarray(_compiled(self.sizes)[1](self.theta, points))

    def inverse_at(self, queries: np.ndarray, z: np.ndarray) -> np.ndarray:
        """2 J H⁻¹ ∇g(z), one column per row of z: the paper's h."""
        return 2 * self.jacobian(queries) @ np.linalg.solve(self.hessian, self.jacobian(z).T)

    def influence(self, queries: np.ndarray, z: np.ndarray, rho: np.ndarray, rho_phi: np.ndarray) -> np.ndarray:
        """The whole influence function at the queries, one column per row z, the penalty's own term included."""
        own = self.inverse_at(queries, z) * (rho_phi - rho * self.value(z))
        drift = 2 * self.penalty * self.jacobian(queries) @ np.linalg.solve(self.hessian, self.theta)
        return own - drift[:, None]


def require_jax() -> Any:
    try:
        import jax
    except ImportError:
        jax = None
    if jax is None:
        raise InputError("a network needs the extra: pip install 'dpcate[network]'")
    return jax


@lru_cache
def _compiled(sizes: tuple[int, ...]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """g and ∇g at many points, compiled once per shape: a search asks for them thousands of times."""
    jax, forward = require_jax(), _forward(sizes)
    gradient = jax.grad(lambda theta, x: forward(theta, x[None])[0])
    return jax.jit(forward), jax.jit(jax.vmap(gradient, (None, 0)))


def _hessian(objective: Callable[..., Any], theta: np.ndarray) -> Any:
    """Column by column, a few at a time: all at once would hold every row's activations for every parameter."""
    jax = require_jax()
    gradient = jax.grad(objective)
    columns = jax.jit(
        lambda basis: jax.lax.map(lambda v: jax.jvp(gradient, (theta,), (v,))[1], basis, batch_size=HESSIAN_COLUMNS)
    )
    return columns(np.eye(len(theta)))


def _forward(sizes: tuple[int, ...]) -> Callable[..., Any]:
    import jax.numpy as jnp

    def forward(theta: Any, x: Any) -> Any:
        layer, start = x, 0
        for depth, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            weights = theta[start : start + fan_in * fan_out].reshape(fan_in, fan_out)
            start += fan_in * fan_out
            layer = layer @ weights + theta[start : start + fan_out]
            start += fan_out
            layer = jnp.tanh(layer) if depth < len(sizes) - 2 else layer
        return layer[:, 0]

    return forward


def _objective(sizes: tuple[int, ...], x: Any, rho: Any, rho_phi: Any, n: float, penalty: float) -> Callable[..., Any]:
    forward = _forward(sizes)

    def objective(theta: Any) -> Any:
        g = forward(theta, x)
        return (rho * g * g - 2 * rho_phi * g).sum() / n + penalty * theta @ theta

    return objective


def _public_start(sizes: tuple[int, ...]) -> np.ndarray:
    """Glorot's initial weights from a fixed public seed."""
    rng = np.random.default_rng(0)
    layers = []
    for fan_in, fan_out in pairwise(sizes):
        limit = np.sqrt(6 / (fan_in + fan_out))
        layers += [rng.uniform(-limit, limit, fan_in * fan_out), np.zeros(fan_out)]
    return np.concatenate(layers)
