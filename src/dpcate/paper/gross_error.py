"""γ = sup over rows z of ‖h(x)·(ρφ − ρĝ(x))‖: the paper's gross-error sensitivity, searched and bounded.

For fixed x and a the norm is convex in y (the score is affine in it), so y is at an end of its range: a and y are
enumerated, x is searched from many starts. The result is a lower bound of the supremum; `certified_bound` is an upper
one. Both depend on rows and never leave the curator's side.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from dpcate.models.kernels import gram

Score = Callable[[np.ndarray, float, float, np.ndarray], np.ndarray]

DIFFERENCE = 1e-8  # at which slopes are taken
MOST_POINTS = 15_000  # that one search looks at


class Fitted(Protocol):
    def value(self, points: np.ndarray) -> np.ndarray: ...

    def inverse_at(self, queries: np.ndarray, z: np.ndarray) -> np.ndarray: ...


def gross_error_sensitivity(
    fitted: Fitted, queries: np.ndarray, score: Score, outcome_range: tuple[float, float], *, starts: int = 16
) -> float:
    """The largest norm found: a coarse look at public points, then L-BFGS-B from the best of them.

    `score(x, a, y, g)` is ρφ − ρg at rows (x, a, y) with ĝ(x) = g.
    """
    width = queries.shape[1]
    coarse = qmc.Sobol(width, scramble=True, rng=np.random.default_rng(0)).random(256)
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * min(width, 6))).reshape(min(width, 6), -1).T
    coarse[: len(corners), : corners.shape[1]] = corners
    best = 0.0
    for a in (0.0, 1.0):
        for y in outcome_range:

            def norms(x: np.ndarray, a: float = a, y: float = y) -> np.ndarray:
                direction = np.linalg.norm(fitted.inverse_at(queries, x), axis=0)
                return direction * np.abs(score(x, a, y, fitted.value(x)))

            found = norms(coarse)
            for start in coarse[np.argsort(found)[-starts:]]:
                search = minimize(
                    partial(_falling, norms),
                    start,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=[(0, 1)] * width,
                    options={"maxfun": MOST_POINTS // (width + 1)},
                )
                best = max(best, -float(search.fun), float(found.max()))
    return best


def _falling(norms: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[float, np.ndarray]:
    """−norm at x and its slope by differences that stay in the box, from one look at all of their points."""
    step = np.where(x + DIFFERENCE <= 1, DIFFERENCE, -DIFFERENCE)
    here, *beside = -norms(np.vstack([x, x + np.diag(step)]))
    return float(here), (np.array(beside) - here) / step


def certified_bound(
    *, queries: np.ndarray, bandwidth: float, penalty: float, norm: float, largest_rho: float, largest_rho_phi: float
) -> float:
    """√λmax(K_qq)/λ · (sup|ρφ| + sup ρ·‖ĝ‖): no row of the schema exceeds it, for the kernel ridge regression."""
    largest = float(np.linalg.eigvalsh(gram("gaussian", bandwidth, queries, queries))[-1])
    return np.sqrt(largest) / penalty * (largest_rho_phi + largest_rho * norm)
