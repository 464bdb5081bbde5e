"""One number for everybody: the best that can be released, and the best there is.

Private: the R-learner's constant, by the library's own machinery. The default private nuisances are fitted and paid as
in every fit; all that is left goes to `private_offset`, with which the library's stages begin: a coarse look, the size
of the scores, a refined look clipped to that size. It estimates the overlap-weighted average effect, since the plain
average divides by propensities and would need more noise. Exact: the mean of the true effect at the test points, which
no estimator knows; no constant has a smaller error.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from dpcate import PrivateCATE
from dpcate.bench.peers.method import DELTA, ONLY_DEFAULT, PROVEN, Case, Fitted, Method
from dpcate.data import read_rows
from dpcate.estimator import plan_of
from dpcate.privacy import Mechanisms
from dpcate.regress import Problem
from dpcate.regress.offset import private_offset


@dataclass(frozen=True)
class ConstantModel:
    constant: float
    width: int

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.constant)


class ConstantStage:
    """A second stage that spends all it is given on one number."""

    name = "constant"

    def fit(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> ConstantModel:
        return ConstantModel(private_offset(problem, mechanisms, mu, name).value, problem.x.shape[1])


def _private(case: Case, epsilon: float, seed: int) -> Fitted:
    train = case.train
    plan = plan_of(PrivateCATE(train.schema, epsilon=epsilon, delta=DELTA, random_state=seed))
    plan = dataclasses.replace(plan, second_stage=ConstantStage())
    rows = read_rows(train.schema, train.Y, train.T, train.X)
    return Fitted(plan.execute(rows, lambda stage, done: None, lambda: None).release.effect)


def _exact(case: Case, epsilon: float, seed: int) -> Fitted:
    return Fitted(lambda points: np.full(len(points), case.tau.mean()))


CONSTANTS = (
    Method(
        name="constant-private",
        title="private constant",
        role="constant",
        private=True,
        guarantee=PROVEN,
        library="dpcate",
        without=ONLY_DEFAULT,
        fit=_private,
        no_interval="none: an interval for the average is none for a person",
    ),
    Method(
        name="constant-exact",
        title="exact constant",
        role="constant",
        private=False,
        guarantee="none: reads the truth",
        library="dpcate",
        code=("bench/peers/constant.py",),
        fit=_exact,
        no_interval="none: there is no doubt about the truth",
        note="the mean of the true effect at the test points",
    ),
)
