"""The datasets of the comparison, and the rows held out of each: fixed before any result was seen.

Low seeds were looked at while the defaults were made, and those from 1000 on serve quick looks and tests; the full
comparison has seeds of its own. A tenth of the rows, 300 at most, is held out by the seed; fitted is on the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import msgspec
import numpy as np

from dpcate import datasets
from dpcate.bench.peers.method import Case
from dpcate.datasets import Dataset
from dpcate.schema import Number, Schema

EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0)
SEEDS = tuple(range(2000, 2010))
QUICK_SEEDS = (1000, 1001)
TEST_POINTS = 300
VARYING = (1, 4, 5, 6, 7, 8, 9, 10)  # instances of ACIC16 whose effect is no constant


@dataclass(frozen=True)
class Source:
    """A dataset by name, its number of rows, how a seed draws it, and the file that does."""

    name: str
    n: int
    load: Callable[[int], Dataset]
    code: str


@dataclass(frozen=True)
class Plan:
    """Everything that is run: each source with each budget and seed."""

    sources: tuple[Source, ...]
    epsilons: tuple[float, ...] = EPSILONS
    seeds: tuple[int, ...] = SEEDS


def synthetic(which: int, n: int) -> Source:
    return Source(f"synthetic {which}", n, partial(datasets.synthetic, which, n), "datasets/synthetic.py")


def _acic16(instance: int) -> Source:
    return Source(f"ACIC16 {instance}", 4802, lambda seed: datasets.acic16(instance), "datasets/acic16.py")


IHDP = Source("IHDP B", 747, datasets.ihdp, "datasets/ihdp.py")
FULL = Plan((*(synthetic(which, n) for n in (3000, 30_000) for which in (1, 2)), *map(_acic16, VARYING), IHDP))
QUICK = Plan((synthetic(1, 1000), IHDP), epsilons=(0.5, 5.0), seeds=QUICK_SEEDS)
TINY = Plan((synthetic(1, 1500), synthetic(1, 7000)), epsilons=(0.1, 10.0), seeds=QUICK_SEEDS)  # what the tests run
SOURCES = {(source.name, source.n): source for plan in (FULL, QUICK, TINY) for source in plan.sources}


@lru_cache(maxsize=4)
def case_of(name: str, n: int, seed: int, *, stretched: bool = True) -> Case:
    """A source's rows for one seed, in random order, divided into rows to fit on and points to be asked about; with the
    scales that its schema stretches, or with even ones."""
    data = SOURCES[name, n].load(seed)
    order = np.random.default_rng(seed).permutation(len(data.Y))
    held_out = min(TEST_POINTS, len(order) // 10)
    train, test = order[held_out:], order[:held_out]
    rows = {name: getattr(data, name)[train] for name in ("X", "T", "Y")}
    schema = data.schema if stretched else _even(data.schema)
    fitted_on = replace(data, **rows, schema=schema, tau=None, propensity=None, outcome_control=None)
    return Case(train=fitted_on, points=data.X[test], tau=data.tau[test])


def _even(schema: Schema) -> Schema:
    """Without typical values: every scale runs evenly from bound to bound."""
    return msgspec.structs.replace(
        schema,
        covariates={
            name: msgspec.structs.replace(covariate, typical=None) if isinstance(covariate, Number) else covariate
            for name, covariate in schema.covariates.items()
        },
    )


def settings(plan: Plan) -> Iterator[tuple[Source, float, int]]:
    """All settings, seeds outermost: a run that is cut short has whole seeds."""
    for seed in plan.seeds:
        for source in plan.sources:
            for epsilon in plan.epsilons:
                yield source, epsilon, seed
