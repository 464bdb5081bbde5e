"""The paper as printed: Theorem 1 at the test points (kernel, network) and Theorem 3 (functional). Not private."""

from functools import partial

import numpy as np

from dpcate.bench.peers.method import DELTA, Case, Fitted, Method
from dpcate.bench.printed import printed


def _fit(case: Case, epsilon: float, seed: int, *, kind: str) -> Fitted:
    """Effects are kept within the outcome's range, as a release of this library does with everybody's."""
    limit = case.train.schema.outcome.range
    effects = np.clip(printed(kind, case.train, case.points, seed).effect(epsilon, DELTA, seed), -limit, limit)
    return Fitted(lambda points: effects)


PRINTED = tuple(
    Method(
        name=f"paper-{kind}",
        title=f"paper as printed, {kind}",
        role="printed",
        private=False,
        guarantee="none: NOT PRIVATE (printed noise, nuisances without noise)",
        library="dpcate",
        fit=partial(_fit, kind=kind),
        no_interval="none: the paper has none",
    )
    for kind in ("functional", "kernel", "network")
)
