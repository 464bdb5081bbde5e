"""A T-learner of two private networks, the idea of Ponte's PrivateTargeting, by this project's own DP-SGD.

Both networks are the library's outcome networks at their defaults, trained on all rows with weight zero for the other
arm. Replacing a row can move a person from one arm to the other, so the two trainings compose and share the budget.
"""

import numpy as np

from dpcate.bench.encoded import encoded
from dpcate.bench.peers.method import DELTA, PROVEN, Case, Fitted, Method
from dpcate.bench.printed import FLOOR
from dpcate.data import read_rows
from dpcate.nuisance import FittedNuisances, NetworkNuisance, TrainingRows
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source

ARMS = ("outcome_control", "outcome_treated")
CODE = (
    "bench/peers/networks.py",
    "models/network.py",
    "nuisance/network.py",
    "nuisance/targets.py",
    "regress/dpsgd.py",
)


def _fit(case: Case, epsilon: float, seed: int) -> Fitted:
    schema, train = case.train.schema, case.train
    rows = read_rows(schema, train.Y, train.T, train.X)
    training = TrainingRows(
        schema=schema,
        rows=rows,
        chosen=np.arange(len(rows.x)),
        n=float(len(rows.x)),
        neighbours="replace-one",
        part=None,
    )
    budget = Budget(epsilon=epsilon, delta=DELTA)
    mechanisms = Mechanisms(Accountant(budget), noise_source(seed))
    arms = FittedNuisances(schema, FLOOR, NetworkNuisance().fit(training, ARMS, mechanisms, budget.mu).predictors)

    def effect(points: np.ndarray) -> np.ndarray:
        control, treated = arms.outcome_by_arm(encoded(schema, points))
        return treated - control

    return Fitted(effect)


NETWORKS = (
    Method(
        name="dpsgd-t",
        title="DP-SGD T-learner",
        role="peer",
        private=True,
        guarantee=PROVEN,
        library="dpcate",
        code=CODE,
        fit=_fit,
        no_interval="none: a pair of networks has no interval",
    ),
)
