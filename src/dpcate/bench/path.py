"""How long adaptive questions to one noise path take, and what they hold in memory."""

import time
from dataclasses import dataclass

import numpy as np

from dpcate.bench.memory import peak_bytes
from dpcate.models.kernels import gram
from dpcate.privacy import noise_source
from dpcate.privacy.path import NoisePath

BLOCK, LAST = 1000, 100


@dataclass(frozen=True, kw_only=True)
class PathTiming:
    """Seconds per thousand questions, and of the last hundred next to what O(i²) makes of the first thousand."""

    questions: int
    seconds_per_block: tuple[float, ...]
    last_hundred: float
    predicted_last_hundred: float
    growth_bytes: int  # of the process's peak memory, over the run

    @property
    def ratio(self) -> float:
        return self.last_hundred / self.predicted_last_hundred


def time_questions(questions: int = 10_000, width: int = 2, bandwidth: float = 0.3) -> PathTiming:
    """Ask one point at a time, at points that fill the box evenly."""
    points = np.outer(np.arange(1, questions + 1), np.sqrt(np.arange(2, width + 2) + 0.1)) % 1.0
    before = peak_bytes()
    path = NoisePath(lambda A, B: gram("gaussian", bandwidth, A, B), sd=1.0, noise=noise_source(0))
    seconds = np.zeros(questions)
    for step, point in enumerate(points):
        start = time.perf_counter()
        path.at(point[None])
        seconds[step] = time.perf_counter() - start
    work = np.arange(questions, dtype=float) ** 2
    return PathTiming(
        questions=questions,
        seconds_per_block=tuple(float(seconds[i : i + BLOCK].sum()) for i in range(0, questions, BLOCK)),
        last_hundred=float(seconds[-LAST:].sum()),
        predicted_last_hundred=float(seconds[:BLOCK].sum() / work[:BLOCK].sum() * work[-LAST:].sum()),
        growth_bytes=peak_bytes() - before,
    )
