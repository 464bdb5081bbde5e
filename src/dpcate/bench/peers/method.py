"""What every method of the comparison looks like: no settings, a guarantee in words, a fit and its answers."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from dpcate.bench.memory import peak_bytes, reset_peak
from dpcate.bench.versions import version_of
from dpcate.datasets import Dataset

DELTA = 1e-5
CASES = ("bench/peers/cases.py", "datasets/dataset.py")  # and a method's own code and a source's
ONLY_DEFAULT = ("regress/moments/stage.py",)  # what computes the default second stage and nothing else
PROVEN = "(ε, δ)-DP, proven"

Role = Literal["ours", "peer", "printed", "constant", "ceiling"]
Interval = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Thing = TypeVar("Thing")


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Rows to fit on and points at which the effect is asked for; `tau`, the truth there, is read by nobody but the
    exact constant."""

    train: Dataset
    points: np.ndarray
    tau: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """Effects at points, and their 90% interval where the method has one."""

    effect: Callable[[np.ndarray], np.ndarray]
    interval: Interval | None = None


@dataclass(frozen=True)
class Cost:
    """Processor seconds, which other programs hardly change, and how far the process's peak of memory rose above what
    it held before (bench/memory.py)."""

    seconds: float = 0.0
    bytes: int = 0

    def __add__(self, later: "Cost") -> "Cost":
        return Cost(self.seconds + later.seconds, max(self.bytes, later.bytes))


def timed(work: Callable[[], Thing]) -> tuple[Thing, Cost]:
    before, start = reset_peak(), time.process_time()
    done = work()
    return done, Cost(time.process_time() - start, max(peak_bytes() - before, 0))


@dataclass(frozen=True, kw_only=True)
class Method:
    """`fit(case, epsilon, seed)`; `private` if its makers claim (ε, δ)-DP of the whole fit, which `guarantee` judges.

    `no_interval` says why there is none, and is empty where there is one. `library` is whose version a result
    depends on, and `code` names the files and folders of this package that compute it, empty for all of the library
    but those in `without`; reading rows, keeping to declared ranges and drawing noise of a given size are not listed:
    tests hold them to it. `prepare(case, seed)` does what no budget changes, once for all budgets: `fit` gets its
    result in the case's place, and every budget is charged its cost.
    """

    name: str
    title: str
    role: Role
    private: bool
    guarantee: str
    library: str
    fit: Callable[[Any, float, int], Fitted]
    code: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    prepare: Callable[[Case, int], tuple[Any, Cost]] = lambda case, seed: (case, Cost())
    no_interval: str = ""
    note: str = ""

    @property
    def needs_budget(self) -> bool:
        """Whether ε changes anything: what is neither private nor printed noise is run once for all budgets."""
        return self.private or self.role == "printed"

    @property
    def knows_scales(self) -> bool:
        """Whether it reads what is typical of a column: no method of others does."""
        return self.role in ("ours", "constant")

    @property
    def version(self) -> str:
        """What a result was made with, the cases aside."""
        return version_of(self.library, self.code, self.without)
