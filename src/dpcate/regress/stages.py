"""The second stages by name."""

from typing import Protocol

from dpcate.errors import InputError
from dpcate.models import Model
from dpcate.privacy import Mechanisms
from dpcate.regress.features import Features
from dpcate.regress.kernel import Kernel
from dpcate.regress.moments import Moments
from dpcate.regress.network import Network
from dpcate.regress.problem import Problem


class SecondStage(Protocol):
    """Spends μ on a problem and returns what may be released."""

    name: str

    def fit(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> Model: ...


STAGES = {"moments": Moments, "features": Features, "kernel": Kernel, "network": Network}


def second_stage_named(second_stage: "str | SecondStage") -> SecondStage:
    """One of the names, or a settings object such as `Features(bandwidth=0.3)`."""
    if isinstance(second_stage, tuple(STAGES.values())):
        return second_stage
    if isinstance(second_stage, str) and second_stage in STAGES:
        return STAGES[second_stage]()
    raise InputError(f"second_stage must be one of {', '.join(STAGES)}, or a settings object of that name")
