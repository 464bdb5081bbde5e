"""Effects and intervals from a release alone: post-processing, free, as often as one likes."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from dpcate.encoding import encode_covariates, reference_points
from dpcate.errors import InputError
from dpcate.tables import as_columns

if TYPE_CHECKING:
    from dpcate.release import Average, Release


def effect(release: "Release", X: Any) -> np.ndarray:
    """The effect at each row of X, within the outcome's range; NaN where a row lacks a usable value."""
    x, present = _encoded(release, X)
    return np.where(present, _bounded(release, release.model.value(x)), np.nan)


def effect_interval(
    release: "Release", X: Any, alpha: float = 0.1, simultaneous: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed normal intervals, each alone or all together; never wider than the outcome's range allows."""
    _require_level(alpha)
    x, present = _encoded(release, X)
    points = len(np.unique(x[present], axis=0)) if simultaneous else 1
    centre = release.model.value(x)
    half = multiplier(alpha, points) * release.model.sd(x, reference_points(release.schema))
    low, high = (_bounded(release, centre + sign * half) for sign in (-1, 1))
    return np.where(present, low, np.nan), np.where(present, high, np.nan)


def multiplier(alpha: float, points: int) -> float:
    """Standard deviations on each side such that `points` intervals all hold at once with probability 1 − alpha.

    Bonferroni's: it needs nothing about how the errors at different points depend on each other.
    """
    return float(norm.isf(alpha / (2 * max(points, 1))))


def ate(release: "Release", X: Any = None) -> float:
    """The mean effect over the private population, or over the rows of a public X that have all values."""
    if X is None:
        return _average(release).value
    effects = effect(release, X)
    if not np.isfinite(effects).any():
        raise InputError("X holds no row with all covariates; the average effect needs at least one")
    return math.fsum(effects[np.isfinite(effects)]) / int(np.isfinite(effects).sum())


def ate_interval(release: "Release", alpha: float = 0.05) -> tuple[float, float]:
    """Equal-tailed normal interval for the mean effect over the private population."""
    _require_level(alpha)
    average = _average(release)
    half = norm.isf(alpha / 2) * average.sd
    low, high = _bounded(release, np.array([average.value - half, average.value + half]))
    return float(low), float(high)


def _average(release: "Release") -> "Average":
    if release.average is None:
        raise InputError("this release holds no average over the private population: ask for one over public rows X")
    return release.average


def _require_level(alpha: float) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InputError("alpha must lie between 0 and 1; 0.1 gives 90% intervals")


def _encoded(release: "Release", X: Any) -> tuple[np.ndarray, np.ndarray]:
    if X is None:
        raise InputError("X is needed: the covariates at which the effect is asked for")
    return encode_covariates(release.schema, as_columns(X, list(release.schema.covariates)))


def _bounded(release: "Release", values: np.ndarray) -> np.ndarray:
    limit = release.schema.outcome.range
    return np.clip(values, -limit, limit)
