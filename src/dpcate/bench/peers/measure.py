"""One method on one case: its errors, the coverage of its intervals, its seconds and its memory."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpcate.bench.memory import peak_bytes, reset_peak
from dpcate.bench.peers import METHODS
from dpcate.bench.peers.cases import Plan, case_of, settings
from dpcate.bench.peers.method import DELTA
from dpcate.bench.run import Job
from dpcate.bench.versions import version_of


def measure(method: str, dataset: str, n: int, epsilon: float | None, seed: int) -> dict[str, Any]:
    """Seconds and memory are those of the fit: imports, data and questions do not count.

    Memory is how far the fit raised the process's peak above what the process held before it (bench/memory.py).
    """
    chosen, case = METHODS[method], case_of(dataset, n, seed)
    before, start = reset_peak(), time.perf_counter()
    fitted = chosen.fit(case, epsilon if epsilon is not None else np.inf, seed)
    seconds, grown = time.perf_counter() - start, peak_bytes() - before
    effect = fitted.effect(case.points)
    result = {
        "pehe": float(np.sqrt(np.mean((effect - case.tau) ** 2))),
        "ate_error": float(abs(effect.mean() - case.tau.mean())),
        "seconds": seconds,
        "mebibytes": max(grown, 0) / 2**20,
    }
    if fitted.interval is not None:
        low, high = fitted.interval(case.points)
        result["coverage"] = float(np.mean((low <= case.tau) & (case.tau <= high)))
        result["width"] = float(np.mean(high - low))
    return result


def jobs(plan: Plan, methods: tuple[str, ...]) -> Iterator[Job]:
    """A job per method and setting; one per seed for methods that no budget changes."""
    for source, epsilon, seed in settings(plan):
        for name in methods:
            if METHODS[name].needs_budget or epsilon == plan.epsilons[0]:
                yield _job(name, source.name, source.n, epsilon if METHODS[name].needs_budget else None, seed)


def _job(method: str, dataset: str, n: int, epsilon: float | None, seed: int) -> Job:
    setting = {"method": method, "dataset": dataset, "n": n, "epsilon": epsilon, "seed": seed}
    versions = {"library": version_of(METHODS[method].library), "delta": DELTA}
    return Job({**setting, **versions}, measure, setting)
