"""The paper as printed: Theorem 1 at the test points (kernel, network) and Theorem 3 (functional). Not private.

Nuisances serve all three, and the fit with its search for γ all budgets: neither depends on ε.
"""

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from dpcate.bench.peers.method import DELTA, Case, Cost, Fitted, Method, timed
from dpcate.bench.printed import PrintedFinite, PrintedFunctional, SecondHalf, printed_from

CODE = (
    "bench/peers/as_printed.py",
    "bench/printed.py",
    "paper",
    "models/fourier.py",
    "models/kernels.py",
    "orthogonal/learners.py",
)


@dataclass(frozen=True)
class Printed:
    """Effects before noise, and the range in which a release of this library would keep everybody's."""

    release: PrintedFinite | PrintedFunctional
    limit: float


@lru_cache(maxsize=1)
def _half(case: Case, seed: int) -> tuple[SecondHalf, Cost]:
    return timed(lambda: SecondHalf.of(case.train, "r", seed))


def _prepare(case: Case, seed: int, *, kind: str) -> tuple[Printed, Cost]:
    half, earlier = _half(case, seed)
    release, own = timed(lambda: printed_from(kind, half, case.points))
    return Printed(release, case.train.schema.outcome.range), earlier + own


def _fit(prepared: Printed, epsilon: float, seed: int) -> Fitted:
    effects = np.clip(prepared.release.effect(epsilon, DELTA, seed), -prepared.limit, prepared.limit)
    return Fitted(lambda points: effects)


PRINTED = tuple(
    Method(
        name=f"paper-{kind}",
        title=f"paper as printed, {kind}",
        role="printed",
        private=False,
        guarantee="none: NOT PRIVATE (printed noise, nuisances without noise)",
        library="dpcate",
        code=CODE,
        prepare=partial(_prepare, kind=kind),
        fit=_fit,
        no_interval="none: the paper has none",
    )
    for kind in ("functional", "kernel", "network")
)
