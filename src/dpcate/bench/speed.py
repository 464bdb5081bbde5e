"""How long one fit takes, next to plain least squares and to what a user would otherwise run."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcate import PrivateCATE, datasets
from dpcate.extras import require

REPETITIONS = 5  # of the quick ones; the fastest counts


@dataclass(frozen=True)
class Timing:
    method: str
    seconds: float
    ratio: float


def compare_fit_times(dataset: int, rows: int) -> list[Timing]:
    """Seconds of one fit each on one of the paper's datasets; ratios are to the private fit, which is warmed up once.

    Least squares has the features that the private fit ended with, for the outcome and again times the treatment.
    """
    CausalForestDML = require("econml.dml", "peers").CausalForestDML
    data = datasets.synthetic(dataset, rows, seed=0)
    private = PrivateCATE(data.schema, epsilon=1.0, delta=1e-5)
    ours = fastest_of(lambda: private.fit(data.Y, data.T, X=data.X))
    basis = private.release_.model.features(data.X)
    features = np.hstack([basis, basis * (data.T - 0.5)[:, None]])
    plain = fastest_of(lambda: np.linalg.lstsq(features, data.Y, rcond=None))
    forest = CausalForestDML(discrete_treatment=True, random_state=0)
    theirs = seconds_of(lambda: forest.fit(data.Y, data.T.astype(int), X=data.X))
    return [
        Timing("dpcate, private (ε = 1)", ours, 1.0),
        Timing("numpy least squares on the same features, not private", plain, plain / ours),
        Timing("EconML CausalForestDML, not private", theirs, theirs / ours),
    ]


def fastest_of(action: Callable[[], object]) -> float:
    """The fastest of a few runs, after one that does not count."""
    action()
    return min(seconds_of(action) for _ in range(REPETITIONS))


def seconds_of(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
