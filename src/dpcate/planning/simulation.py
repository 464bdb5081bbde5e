"""The noise of a fit, foreseen: the real estimator with its real mechanisms, run again and again on stand-ins.

Several stand-ins are drawn, and each is fitted several times with fresh noise. Three spreads are told apart, as mean
squares over public points: within a stand-in (what privacy adds), between stand-ins (sampling noise, which falls as
1/n), and of the grand mean around the truth (what shrinkage takes away).

Large tables are simulated by fewer rows m with a budget of n/m times the μ: the noise of a mean over n people that is
released at μ depends on n·μ alone. Sampling noise is brought from m rows to n afterwards.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from scipy.stats import norm

from dpcate.data import read_rows
from dpcate.planning.question import Question
from dpcate.privacy import gdp_epsilon, gdp_mu
from dpcate.release import ChargedMechanism, GaussianSpent, Release

SIMULATED_ROWS = {"moments": 10_000, "features": 3_000, "kernel": 700, "network": 10_000}  # at most
ACCURACY = {"moments": 0.05, "features": 0.02, "kernel": 0.03, "network": 0.03}  # of the noise, as a standard error
LARGEST_EPSILON = 100.0  # of a budget
MOST_CELLS = 4_000_000  # rows × columns × fits, beyond the fewest


@dataclass(frozen=True)
class Effort:
    """How many fits on each stand-in, and from how many stand-ins to how many, until the noise is known well enough."""

    fits: int
    fewest: int
    most: int


QUICK = Effort(fits=2, fewest=4, most=4)
THOROUGH = Effort(fits=3, fewest=8, most=100)


@dataclass(frozen=True)
class Share:
    """What one part of a fit costs: the fraction of μ² of the rows that it reads, None where it is not Gaussian."""

    name: str
    rows: str
    fraction: float | None


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Root mean squares over the points; the unit is the outcome's.

    `noise_sd` is what privacy adds, `noise_width` an interval for that alone; `width` is the mean width of the
    intervals that the release will report; `error` is the whole error of the effect, on the stand-ins. `uncertainty`
    is the relative standard error of `noise_sd`. `bound` says that the simulated budget could not be raised as far as
    so few rows needed, so that the noise is at most this.
    """

    noise_sd: float
    noise_width: float
    width: float
    error: float
    uncertainty: float
    simulated_rows: int
    simulated_fits: int
    bound: bool
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Group:
    """The fits on one stand-in: effects by fit and point; the mean width and the charges of the first.

    `sampling_stated` says that the width has the sampling noise of n rows, not of the m that were simulated.
    """

    effects: np.ndarray
    width: float
    sampling_stated: bool
    charges: tuple[ChargedMechanism, ...]


@dataclass(frozen=True)
class Scaled:
    """The rows that are simulated for n, and the ε that makes them worth as much."""

    rows: int
    epsilon: float
    bound: bool


def predict(
    question: Question, effort: Effort = THOROUGH, progress: Callable[[float], None] = lambda done: None
) -> Prediction:
    """Fit stand-ins until the noise is known well enough."""
    scaled, groups, accuracy = scale(question), [], ACCURACY[question.second_stage]
    affordable = MOST_CELLS // (effort.fits * scaled.rows * question.schema.width)
    most = max(effort.fewest, min(effort.most, affordable))
    while len(groups) < effort.fewest or (len(groups) < most and _uncertainty(groups) > accuracy):
        groups.append(_group(question, scaled, effort.fits, len(groups)))
        progress(len(groups) / most)
    return _prediction(question, scaled, groups)


def scale(question: Question) -> Scaled:
    """Fewer rows with the same n·μ; a budget of ε = 100 is the largest there is."""
    rows = min(question.rows, SIMULATED_ROWS[question.second_stage])
    if rows == question.rows:
        return Scaled(rows, question.epsilon, False)
    mu = question.pipeline.budget.mu * question.rows / rows
    epsilon = gdp_epsilon(mu, question.delta)
    return Scaled(rows, min(epsilon, LARGEST_EPSILON), epsilon > LARGEST_EPSILON)


def _group(question: Question, scaled: Scaled, fits: int, number: int) -> Group:
    rows = read_rows(question.schema, table=question.stand_in.table(scaled.rows, seed=number))
    releases = [question.tried(rows, scaled.epsilon, seed=number * fits + fit) for fit in range(fits)]
    effects = np.array([release.effect(question.points) for release in releases])
    return Group(
        effects,
        _mean_width(releases[0], question, scaled),
        _states_sampling_noise(releases[0]),
        tuple(releases[0].charges),
    )


def _mean_width(release: Release, question: Question, scaled: Scaled) -> float:
    """Of the intervals; where the model states its sampling noise, as n rows instead of m would have it."""
    if _states_sampling_noise(release):
        sampling_sd = release.model.sampling_sd * math.sqrt(scaled.rows / question.rows)
        model = msgspec.structs.replace(release.model, sampling_sd=sampling_sd)
        release = msgspec.structs.replace(release, model=model)
    low, high = release.effect_interval(question.points, question.alpha)
    return float(np.mean(high - low))


def _states_sampling_noise(release: Release) -> bool:
    return hasattr(release.model, "sampling_sd")


def _within(groups: list[Group]) -> np.ndarray:
    """The variance over noise draws, mean over points, of each stand-in."""
    return np.array([group.effects.var(axis=0, ddof=1).mean() for group in groups])


def _uncertainty(groups: list[Group]) -> float:
    """The relative standard error of the sd of the noise: half of the variance's."""
    within = _within(groups)
    error = within.std(ddof=1) / math.sqrt(len(groups))
    return float(error / (2 * within.mean())) if error else 0.0


def _prediction(question: Question, scaled: Scaled, groups: list[Group]) -> Prediction:
    fits, share_of_rows = len(groups[0].effects), scaled.rows / question.rows
    noise = float(_within(groups).mean())
    centres = np.array([group.effects.mean(axis=0) for group in groups])
    spread = float(centres.var(axis=0, ddof=1).mean())
    sampling = max(spread - noise / fits, 0.0)
    truth = question.stand_in.effect(question.encoded_points)
    bias = max(float(np.mean((centres.mean(axis=0) - truth) ** 2)) - spread / len(groups), 0.0)

    variance = noise + sampling * share_of_rows
    width = float(np.mean([group.width for group in groups]))
    both_sides = 2 * float(norm.isf(question.alpha / 2))
    if not groups[0].sampling_stated:
        reported = (width / both_sides) ** 2 - sampling * (1 - share_of_rows)
        width = both_sides * math.sqrt(max(reported, variance)) if share_of_rows < 1 else width
    return Prediction(
        noise_sd=math.sqrt(noise),
        noise_width=both_sides * math.sqrt(noise),
        width=width,
        error=math.sqrt(variance + bias),
        uncertainty=_uncertainty(groups),
        simulated_rows=scaled.rows,
        simulated_fits=fits * len(groups),
        bound=scaled.bound,
        shares=_shares(groups[0].charges, gdp_mu(scaled.epsilon, question.delta)),
    )


def _shares(charges: tuple[ChargedMechanism, ...], mu: float) -> tuple[Share, ...]:
    """Charges by the part of the fit that made them, as fractions of μ²."""
    spent: dict[tuple[str, str], float | None] = {}
    for charge in charges:
        part = charge.name.split(":")[0], charge.rows
        before = spent.get(part, 0.0)
        gaussian = isinstance(charge.spent, GaussianSpent) and before is not None
        spent[part] = before + (charge.spent.mu / mu) ** 2 if gaussian else None
    return tuple(Share(name, rows, fraction) for (name, rows), fraction in spent.items())
