"""How long one fit takes, next to what a user would otherwise run."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from dpcate import PrivateCATE, datasets
from dpcate.extras import require


@dataclass(frozen=True)
class Timing:
    method: str
    seconds: float
    ratio: float


def compare_fit_times(rows: int) -> list[Timing]:
    """Seconds of one fit each on Dataset 1; the private fit is warmed up once, the forest needs no warm-up."""
    CausalForestDML = require("econml.dml", "peers").CausalForestDML
    data = datasets.synthetic(1, rows, seed=0)
    private = PrivateCATE(data.schema, epsilon=1.0, delta=1e-5)
    private.fit(data.Y, data.T, X=data.X)
    ours = seconds_of(lambda: private.fit(data.Y, data.T, X=data.X))
    forest = CausalForestDML(discrete_treatment=True, random_state=0)
    theirs = seconds_of(lambda: forest.fit(data.Y, data.T.astype(int), X=data.X))
    return [
        Timing("dpcate, private (ε = 1)", ours, theirs / ours),
        Timing("EconML CausalForestDML, not private", theirs, 1.0),
    ]


def seconds_of(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
