"""This library's four second stages, everything else at its defaults."""

from functools import partial

from dpcate import PrivateCATE
from dpcate.bench.peers.method import DELTA, ONLY_DEFAULT, PROVEN, Case, Fitted, Method


def _fit(case: Case, epsilon: float, seed: int, *, second_stage: str) -> Fitted:
    train = case.train
    estimator = PrivateCATE(
        train.schema, epsilon=epsilon, delta=DELTA, second_stage=second_stage, random_state=seed
    ).fit(train.Y, train.T, X=train.X)
    return Fitted(estimator.effect, estimator.effect_interval)


OURS = tuple(
    Method(
        name=f"dpcate-{stage}",
        title=f"dpcate, {stage}",
        role="ours",
        private=True,
        guarantee=PROVEN,
        library="dpcate",
        without=() if stage == "moments" else ONLY_DEFAULT,
        fit=partial(_fit, second_stage=stage),
    )
    for stage in ("moments", "features", "kernel", "network")
)
