"""What diagnostics publish, and how to read it: pure functions of released numbers.

Every reading is a ratio of two noisy sums. Its interval is Fieller's: all θ for which numerator − θ·denominator may be
noise. Where the denominator itself may be noise that is every number, so too little budget gives no wrong answer.
"""

import math

import msgspec
import numpy as np
from scipy.stats import chi2, norm

from dpcate.errors import InputError, ReleaseError

_LARGEST = 1e100  # squares and products stay finite
_CLEAR = 1.645  # sds of its noise, beyond which a number is told

Interval = tuple[float, float]


class Ratio(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two noisy sums, and the covariance of their errors: privacy noise, and sampling noise where it is told."""

    numerator: float
    denominator: float
    numerator_variance: float
    denominator_variance: float
    covariance: float

    def __post_init__(self) -> None:
        _require_numbers([getattr(self, name) for name in self.__struct_fields__])
        limit = math.sqrt(max(self.numerator_variance, 0.0)) * math.sqrt(max(self.denominator_variance, 0.0))
        proper = self.numerator_variance > 0 and self.denominator_variance >= 0
        if not proper or abs(self.covariance) > limit * (1 + 1e-9):
            raise ReleaseError("the variances of a diagnostic must be those of two numbers")

    @property
    def value(self) -> float:
        """The ratio; NaN where the denominator may be noise, so that its 90% interval is the whole line."""
        known = self.denominator > _CLEAR * math.sqrt(self.denominator_variance)
        return self.numerator / self.denominator if known else math.nan

    def interval(self, alpha: float) -> Interval:
        """Fieller's interval at level 1 − alpha; the whole line where the denominator may be zero."""
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
            raise InputError("alpha must lie between 0 and 1; 0.1 gives 90% intervals")
        z2 = float(norm.isf(alpha / 2)) ** 2
        a, b = self.numerator, self.denominator
        leading = b * b - z2 * self.denominator_variance
        if b <= 0 or leading <= 1e-12 * b * b:
            return -math.inf, math.inf
        middle = a * b - z2 * self.covariance
        spread = math.sqrt(max(middle**2 - leading * (a * a - z2 * self.numerator_variance), 0.0))
        return (middle - spread) / leading, (middle + spread) / leading


class Overlap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noisy counts of rows by arm and estimated propensity, in equal bins of [0, 1]; `sd` is each count's noise.

    Propensities below `margin` or above 1 − `margin` count as extreme.
    """

    control: list[float]
    treated: list[float]
    sd: float
    margin: float

    def __post_init__(self) -> None:
        _require_numbers([*self.control, *self.treated, self.sd])
        if not len(self.control) == len(self.treated) > 0 or self.sd <= 0 or not 0 < self.margin < 0.5:
            raise ReleaseError("the overlap of a release must hold counts of both arms and a positive noise")

    @property
    def edges(self) -> np.ndarray:
        """The ends of the bins."""
        return np.linspace(0.0, 1.0, len(self.control) + 1)

    @property
    def extreme(self) -> Ratio:
        """Rows with an extreme propensity, over all rows."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        beyond = (middles < self.margin) | (middles > 1 - self.margin)
        both = np.asarray(self.control) + np.asarray(self.treated)
        outer, variance = 2 * int(beyond.sum()) * self.sd**2, 2 * len(both) * self.sd**2
        return Ratio(
            numerator=float(both[beyond].sum()),
            denominator=float(both.sum()),
            numerator_variance=outer or self.sd**2,
            denominator_variance=variance,
            covariance=outer,
        )

    @property
    def estimate(self) -> float:
        """The share of rows with an extreme propensity."""
        return float(np.clip(self.extreme.value, 0.0, 1.0))

    def interval(self, alpha: float = 0.1) -> Interval:
        """For the people in the data: it holds privacy noise, which is all the noise there is."""
        return _within(self.extreme.interval(alpha), self.extreme.value, 0.0, 1.0)


class OutcomeFit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of the outcome's variance the model of the outcome leaves unexplained."""

    unexplained: Ratio

    @property
    def estimate(self) -> float:
        """R²: 1 is a perfect prediction, 0 no better than the mean, below 0 worse."""
        return min(1 - self.unexplained.value, 1.0)

    def interval(self, alpha: float = 0.1) -> Interval:
        low, high = self.unexplained.interval(alpha)
        return _within((1 - high, 1 - low), 1 - self.unexplained.value, -math.inf, 1.0)


class Heterogeneity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The slope of the effect on its prediction, among people on whom it was not fitted.

    0: predictions say nothing about who benefits more, as when everybody has the same effect. 1: differences between
    predictions are as large as those between effects. Below 1: they are exaggerated.
    """

    slope: Ratio

    @property
    def estimate(self) -> float:
        return self.slope.value

    def interval(self, alpha: float = 0.1) -> Interval:
        return self.slope.interval(alpha)

    @property
    def p_value(self) -> float:
        """How often a slope this large or larger would be seen if everybody had the same effect."""
        return float(norm.sf(self.slope.numerator / math.sqrt(self.slope.numerator_variance)))


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """People with similar predictions: the mean prediction, and by how much the effect exceeds it on average."""

    predicted: float
    excess: Ratio

    def __post_init__(self) -> None:
        _require_numbers([self.predicted])


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Predicted against estimated effects, in groups from the lowest to the highest prediction.

    `cuts` lie between the groups; `limit` is the largest effect that the outcome's range allows.
    """

    groups: list[Group]
    cuts: list[float]
    limit: float

    def __post_init__(self) -> None:
        _require_numbers([*self.cuts, self.limit])
        if len(self.groups) < 2 or len(self.cuts) != len(self.groups) - 1 or self.limit <= 0:
            raise ReleaseError("the calibration of a release must hold groups, and cuts between them")
        if sorted(self.cuts) != self.cuts:
            raise ReleaseError("the cuts of a calibration must rise")

    @property
    def predicted(self) -> np.ndarray:
        return np.array([group.predicted for group in self.groups])

    @property
    def estimate(self) -> np.ndarray:
        """The mean effect of each group; NaN where it holds too few people for the noise."""
        effects = self.predicted + np.array([group.excess.value for group in self.groups])
        return np.clip(effects, -self.limit, self.limit)

    def interval(self, alpha: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) for the mean effect of each group."""
        ends = np.array([group.excess.interval(alpha) for group in self.groups]) + self.predicted[:, None]
        low, high = np.clip(ends, -self.limit, self.limit).T
        return low, high

    @property
    def p_value(self) -> float:
        """How often differences this large or larger would be seen if all predictions were right on average."""
        sums = [group.excess for group in self.groups]
        misfit = sum(excess.numerator**2 / excess.numerator_variance for excess in sums)
        return float(chi2.sf(misfit, len(sums)))


class Diagnostics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was asked for and paid; None for the rest."""

    overlap: Overlap | None = None
    outcome: OutcomeFit | None = None
    heterogeneity: Heterogeneity | None = None
    calibration: Calibration | None = None


def _within(interval: Interval, estimate: float, low: float, high: float) -> Interval:
    """The interval in a public range; noise that puts the estimate outside moves both into it together."""
    moved = 0.0 if math.isnan(estimate) else min(max(estimate, low), high) - estimate
    start, end = (min(max(bound + moved, low), high) for bound in interval)
    return start, end


def _require_numbers(numbers: list[float]) -> None:
    if not all(abs(number) <= _LARGEST for number in numbers):
        raise ReleaseError(f"the numbers in the diagnostics of a release must be finite and not exceed {_LARGEST:g}")
