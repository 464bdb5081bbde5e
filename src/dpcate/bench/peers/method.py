"""What every method of the comparison looks like: no settings, a guarantee in words, a fit and its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcate.datasets import Dataset

DELTA = 1e-5
PROVEN = "(ε, δ)-DP, proven"

Role = Literal["ours", "peer", "printed", "constant", "ceiling"]
Interval = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Method:
    """`fit(case, epsilon, seed)`; `private` if its makers claim (ε, δ)-DP of the whole fit, which `guarantee` judges.

    `no_interval` says why there is none, and is empty where there is one; `library` is whose version a result
    depends on.
    """

    name: str
    title: str
    role: Role
    private: bool
    guarantee: str
    library: str
    fit: Callable[[Case, float, int], Fitted]
    no_interval: str = ""
    note: str = ""

    @property
    def needs_budget(self) -> bool:
        """Whether ε changes anything: what is neither private nor printed noise is run once for all budgets."""
        return self.private or self.role == "printed"
