"""How often the interval of the average effect covers, and how wide it is next to the best that no privacy allows."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from dpcate import PrivateCATE, datasets
from dpcate.bench.run import Progress

EPSILONS = (0.5, 1.0, 5.0)
ROWS, DELTA, ALPHA = 3000, 1e-5, 0.05
POPULATION = (math.e**2 - 1) / 2 + 3 * (1 - math.cos(4)) / 4  # the mean of exp(2x) + 3 sin(4x) over [0, 1]


@dataclass(frozen=True)
class Coverage:
    """Of the private interval at this budget, over repeated data and noise; `oracle_width` is that of the non-private
    doubly robust one, which knows propensity and outcomes."""

    epsilon: float
    coverage: float
    width: float
    oracle_width: float


def cover(seeds: range, epsilons: Iterable[float], progress: Progress) -> Iterator[Coverage]:
    """On Dataset 1, whose population's average effect is known."""
    epsilons = list(epsilons)
    for number, epsilon in enumerate(epsilons):
        progress(f"average effects at ε = {epsilon:g}", number / len(epsilons))
        runs = np.array([_run(seed, epsilon) for seed in seeds])
        yield Coverage(epsilon, *runs.mean(axis=0).tolist())


def _run(seed: int, epsilon: float) -> tuple[float, float, float]:
    data = datasets.synthetic(1, ROWS, seed=seed)
    model = PrivateCATE(data.schema, epsilon=epsilon, delta=DELTA, random_state=seed).fit(data.Y, data.T, X=data.X)
    low, high = model.ate_interval(alpha=ALPHA)
    return float(low <= POPULATION <= high), high - low, 2 * norm.isf(ALPHA / 2) * oracle_sd(data)


def oracle_sd(data: datasets.Dataset) -> float:
    """The sd of the mean of doubly robust scores with the true nuisances."""
    known = np.where(data.T == 1, data.outcome_treated, data.outcome_control)
    weight = data.T / data.propensity - (1 - data.T) / (1 - data.propensity)
    return float(np.std(data.tau + weight * (data.Y - known), ddof=1) / math.sqrt(len(data.Y)))
