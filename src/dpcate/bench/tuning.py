"""The data on which the defaults of `Features` were chosen, and the comparison that chose them.

Random smooth effects of one to five covariates, none of them the paper's. Errors are relative to the sd of the
effect: 1.0 is what the best constant reaches. Dataset 1, on which the results are reported, was not used.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.regress import Features, Problem
from dpcate.regress.features import Rule

Curve = Callable[[np.ndarray], np.ndarray]

WIDTHS = (1, 2, 4)
BUDGETS = ((1350, 0.1), (1350, 0.5), (1350, 1.0), (1350, 5.0), (13_500, 1.0))
TEST_POINTS = 1000
FACTORS = {"bandwidth": (0.5, 1.0, 2.0), "penalty": (0.33, 1.0, 3.0), "threshold": (0.5, 1.0, 3.0)}


@dataclass(frozen=True)
class TuningProblem:
    problem: Problem
    points: np.ndarray
    effect: np.ndarray


@dataclass(frozen=True)
class TuningResult:
    setting: str
    factor: float
    rows: int
    epsilon: float
    relative_error: float


def random_problem(seed: int, rows: int, width: int) -> TuningProblem:
    """An R-learner problem with known nuisances: additive smooth effects, sometimes an interaction."""
    rng = np.random.default_rng(seed)
    total = rows + TEST_POINTS
    x = rng.random((total, width))
    columns = rng.choice(width, min(width, int(rng.integers(1, 3))), replace=False)
    effect = sum(_shape(rng)(x[:, column]) for column in columns)
    if width > 1 and rng.random() < 0.4:
        effect = effect + _shape(rng)(x[:, columns[0]]) * _shape(rng)(x[:, rng.integers(width)])
    effect = (effect - effect.mean()) / effect.std() * rng.uniform(0.4, 1.4) + rng.uniform(-3, 3)
    propensity = np.clip(0.5 + 0.3 * rng.random() * np.sin(3 * x[:, 0] + rng.uniform(0, 6)), 0.1, 0.9)
    w = (rng.random(total) < propensity) - propensity
    tails = (lambda m: rng.uniform(-1.7, 1.7, m), lambda m: rng.normal(size=m), lambda m: rng.standard_t(4, m) / 1.4)
    noise = rng.uniform(0.3, 1.0) * tails[rng.integers(3)](total)
    span = float(np.ptp(effect * (w > 0) + noise)) * rng.uniform(1.0, 1.5)
    problem = Problem(
        x=x[:rows],
        rho=w[:rows] ** 2,
        rho_phi=(w * (w * effect + noise))[:rows],
        reference=rng.random((256, width)),
        n=rows,
        span=span,
        curvature=0.25,
        multiplier=0.5,
        two_valued=False,
        neighbours="replace-one",
        rows_per_person=1,
        part=None,
    )
    return TuningProblem(problem, x[rows:], effect[rows:])


def compare_settings(repetitions: int) -> Iterator[TuningResult]:
    """The default rule, and the same with one setting multiplied by a factor."""
    for rows, epsilon in BUDGETS:
        for setting, factors in FACTORS.items():
            for factor in factors:
                errors = [
                    relative_error(random_problem(seed, rows, width), epsilon, seed, setting, factor)
                    for seed in range(repetitions)
                    for width in WIDTHS
                ]
                yield TuningResult(setting, factor, rows, epsilon, float(np.sqrt(np.mean(np.square(errors)))))


def relative_error(tuning: TuningProblem, epsilon: float, seed: int, setting: str, factor: float) -> float:
    """Root mean squared error over the sd of the effect, capped at 2.5."""
    mechanisms = Mechanisms(Accountant(Budget(epsilon=epsilon, delta=1e-5)), noise_source(seed))
    mu = mechanisms.accountant.budget.mu
    rule = dataclasses.replace(Rule(), **{setting: factor * getattr(Rule(), setting)})
    model = Features(rule=rule).fit(tuning.problem, mechanisms, mu, "effect")
    error = np.sqrt(np.mean((model.value(tuning.points) - tuning.effect) ** 2)) / tuning.effect.std()
    return float(min(error, 2.5))


def _shape(rng: np.random.Generator) -> Curve:
    return smooth_curves(rng.uniform(0.5, 1.5), rng.uniform(0, 1))[rng.integers(4)]


def smooth_curves(stretch: float, shift: float) -> tuple[Curve, ...]:
    """A wave, a bend, a rise and a bowl on [0, 1]."""
    return (
        lambda x: np.sin(2 * np.pi * (0.7 * stretch * x + shift)),
        lambda x: 2 / (1 + np.exp(-8 * (x - shift))) - 1,
        lambda x: np.exp(1.5 * stretch * x) / 3,
        lambda x: 2 * np.sign(stretch - 1) * (x - shift) ** 2,
    )
