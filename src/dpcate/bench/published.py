"""The default on published data and on effects with jumps: errors, coverage and widths at five budgets.

A seed draws the rows (synthetic data) or which are held out (ACIC16), and the noise. Asked is at 300 people who were
not fitted on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from dpcate import PrivateCATE, datasets
from dpcate.bench.problems import Trial
from dpcate.bench.run import Progress
from dpcate.schema import Number, Outcome, Schema

EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0)
DELTA, ALPHA = 1e-5, 0.1
ASKED = 300


@dataclass(frozen=True)
class Cell:
    """Means over seeds; `constant` is the error of the best constant, `width` that of the interval over the error."""

    data: str
    epsilon: float
    error: float
    constant: float
    coverage: float
    width: float


def synthetic_trial(which: int, n: int, seed: int) -> Trial:
    data = datasets.synthetic(which, n + ASKED, seed=seed)
    return Trial(data.X[:n], data.T[:n], data.Y[:n], data.X[n:], data.tau[n:], data.schema)


def acic16_trial(instance: int, seed: int) -> Trial:
    data = _acic16(instance)
    order = np.random.default_rng(seed).permutation(len(data.Y))
    asked, fitted = order[:ASKED], order[ASKED:]
    return Trial(data.X[fitted], data.T[fitted], data.Y[fitted], data.X[asked], data.tau[asked], data.schema)


@lru_cache(maxsize=1)
def _acic16(instance: int) -> datasets.Dataset:
    return datasets.acic16(instance)


def step_trial(width: int, seed: int, n: int = 3000) -> Trial:
    """An effect that jumps by 2 somewhere along one column and by 1 in the middle of another."""
    rng = np.random.default_rng([5, seed, width])
    x = rng.uniform(size=(n + ASKED, width))
    treated = (rng.random(len(x)) < 0.3 + 0.4 * x[:, 0]).astype(float)
    effect = 2.0 * (x[:, 0] > rng.uniform(0.3, 0.7)) + (x[:, 1] > 0.5)
    outcome = effect * treated + x[:, 0] + x[:, 1] + rng.uniform(-1, 1, len(x))
    schema = Schema(
        covariates={f"x{j}": Number(0, 1) for j in range(width)},
        treatment="treated",
        outcome=Outcome("outcome", low=-1, high=6),
    )
    return Trial(x[:n], treated[:n], outcome[:n], x[n:], effect[n:], schema)


SOURCES = {
    **{f"synthetic {w}, {n}": partial(synthetic_trial, w, n) for w in (1, 2) for n in (3000, 30_000)},
    **{f"ACIC16 {instance}": partial(acic16_trial, instance) for instance in (1, 4, 5, 6)},
    **{f"steps, {width} columns": partial(step_trial, width) for width in (2, 10)},
}


def measure(seeds: range, sources: Iterable[str], epsilons: Iterable[float], progress: Progress) -> Iterator[Cell]:
    cells = [(source, epsilon) for source in sources for epsilon in epsilons]
    for number, (source, epsilon) in enumerate(cells):
        progress(f"{source} at ε = {epsilon:g}", number / len(cells))
        runs = np.array([_run(SOURCES[source](seed), epsilon, seed) for seed in seeds])
        error, constant, coverage, width = runs.mean(axis=0).tolist()
        yield Cell(source, epsilon, error, constant, coverage, width / error)


def _run(trial: Trial, epsilon: float, seed: int) -> tuple[float, float, float, float]:
    model = PrivateCATE(trial.schema, epsilon=epsilon, delta=DELTA, random_state=seed).fit(trial.Y, trial.T, X=trial.X)
    low, high = model.effect_interval(trial.points, alpha=ALPHA)
    error = float(np.sqrt(np.mean((model.effect(trial.points) - trial.tau) ** 2)))
    covered = float(np.mean((low <= trial.tau) & (trial.tau <= high)))
    return error, float(trial.tau.std()), covered, float(np.mean(high - low))
