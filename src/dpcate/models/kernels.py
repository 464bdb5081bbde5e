"""Kernels on the unit box with k(x, x) = 1, as functions of the distance d = ‖x − z‖ / bandwidth.

    gaussian   exp(−d²/2)
    matern32   (1 + √3·d) exp(−√3·d)
    matern52   (1 + √5·d + 5d²/3) exp(−√5·d)
The unit diagonal is what sensitivities are proven for; any other normalisation cancels against the penalty.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from dpcate.errors import InputError


def _gaussian(d: np.ndarray) -> np.ndarray:
    np.square(d, out=d)
    d *= -0.5
    return np.exp(d, out=d)


def _matern32(d: np.ndarray) -> np.ndarray:
    scaled = math.sqrt(3.0) * d
    return (1 + scaled) * np.exp(-scaled)


def _matern52(d: np.ndarray) -> np.ndarray:
    scaled = math.sqrt(5.0) * d
    return (1 + scaled + scaled * scaled / 3) * np.exp(-scaled)


# each may write over the distances that it is given
PROFILES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gaussian": _gaussian,
    "matern32": _matern32,
    "matern52": _matern52,
}


def require_kernel(kind: str, bandwidth: float) -> None:
    """Refuse an unknown kernel or a bandwidth that is not a positive number."""
    if kind not in PROFILES:
        raise InputError(f"the kernel must be one of {', '.join(PROFILES)}")
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float):
        raise InputError("the bandwidth must be a number")
    if not (math.isfinite(bandwidth) and bandwidth > 0):
        raise InputError("the bandwidth must be a positive finite number")


def gram(kind: str, bandwidth: float, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """k(a, b) for every row a of A and b of B."""
    require_kernel(kind, bandwidth)
    return PROFILES[kind](cdist(A, B) / bandwidth)
