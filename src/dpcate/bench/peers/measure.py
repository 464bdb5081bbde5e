"""One method on one case: its errors, the coverage of its intervals, its seconds and its memory."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from dpcate.bench.peers import METHODS
from dpcate.bench.peers.cases import Plan, Source, case_of, settings
from dpcate.bench.peers.method import CASES, DELTA, Case, Cost, timed
from dpcate.bench.run import Job
from dpcate.bench.versions import version_of


def measure(method: str, dataset: str, n: int, epsilon: float | None, seed: int) -> dict[str, Any]:
    """Seconds and memory are those of the fit: imports, data and questions do not count."""
    chosen = METHODS[method]
    case = case_of(dataset, n, seed, stretched=chosen.knows_scales)
    prepared, earlier = _prepared(method, case, seed)
    fitted, own = timed(lambda: chosen.fit(prepared, epsilon if epsilon is not None else np.inf, seed))
    cost = earlier + own
    effect = fitted.effect(case.points)
    result = {
        "pehe": float(np.sqrt(np.mean((effect - case.tau) ** 2))),
        "ate_error": float(abs(effect.mean() - case.tau.mean())),
        "seconds": cost.seconds,
        "mebibytes": cost.bytes / 2**20,
    }
    if fitted.interval is not None:
        low, high = fitted.interval(case.points)
        result["coverage"] = float(np.mean((low <= case.tau) & (case.tau <= high)))
        result["width"] = float(np.mean(high - low))
    return result


@lru_cache(maxsize=len(METHODS))
def _prepared(method: str, case: Case, seed: int) -> tuple[Any, Cost]:
    return METHODS[method].prepare(case, seed)


def jobs(plan: Plan, methods: tuple[str, ...]) -> Iterator[Job]:
    """A job per method and setting; one per seed for methods that no budget changes."""
    for source, epsilon, seed in settings(plan):
        for name in methods:
            if METHODS[name].needs_budget or epsilon == plan.epsilons[0]:
                yield _job(name, source, epsilon if METHODS[name].needs_budget else None, seed)


def _job(method: str, source: Source, epsilon: float | None, seed: int) -> Job:
    setting = {"method": method, "dataset": source.name, "n": source.n, "epsilon": epsilon, "seed": seed}
    cases = version_of("dpcate", (*CASES, source.code))
    versions = {"library": METHODS[method].version, "cases": cases, "delta": DELTA}
    return Job({**setting, **versions}, measure, setting)
