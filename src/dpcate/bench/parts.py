"""What each part of the default brings: its errors without that part next to those with it, on the same rows and noise.

A part is taken away by giving one public rule another answer; all else, the budget too, stays as it is. What a part
does not touch has a change of 0.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from msgspec import structs

from dpcate import PrivateCATE
from dpcate.bench.clinic import clinic_trial
from dpcate.bench.interplay import correlated_trial, product_trial
from dpcate.bench.problems import Trial, tuning_trial
from dpcate.bench.published import DELTA, SOURCES
from dpcate.bench.run import Progress
from dpcate.models import basis
from dpcate.pipeline import Pipeline
from dpcate.regress import columns
from dpcate.regress.moments import belief, rounds, rules, together
from dpcate.schema import Number

EPSILONS = (0.5, 1.0, 5.0)
EVERY_COLUMN = np.array([math.inf])  # may matter, as likely as not
GENTLE_ONLY = np.array([1e-9, 1e-9, 1 - 2e-9])


@dataclass(frozen=True)
class Part:
    """What is taken away: rules that answer something else, what the schema says, or how the fit is asked for."""

    name: str
    rules: tuple[tuple[Any, str, Any], ...] = ()
    declared: Callable[[Trial], Trial] = lambda trial: trial
    asked: tuple[tuple[str, Any], ...] = ()

    @contextmanager
    def taken_away(self) -> Iterator[None]:
        """What was worked out under the other rules is forgotten, before and after."""
        with ExitStack() as stack:
            stack.callback(_forget)
            for place, rule, answer in self.rules:
                stack.enter_context(mock.patch.object(place, rule, answer))
            _forget()
            yield


def _forget() -> None:
    belief._layout.cache_clear()
    belief._slabs.cache_clear()


def untypical(trial: Trial) -> Trial:
    """Without what is typical of skewed columns."""
    covariates = {
        name: structs.replace(column, typical=None) if isinstance(column, Number) else column
        for name, column in trial.schema.covariates.items()
    }
    return dataclasses.replace(trial, schema=structs.replace(trial.schema, covariates=covariates))


def _evenly(variance: np.ndarray, importance: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    return np.full(len(variance), 1 / len(variance))


PARTS = {
    part.name: part
    for part in (
        Part("products of columns", ((basis, "PAIR_DEGREE", 1),)),
        Part("second moments of correlated columns", ((rules, "gram_terms", lambda signal: 0),)),
        Part("what is typical of skewed columns", declared=untypical),
        Part("three looks at columns", ((columns, "LOOKS", (1.0,)),)),
        Part("two looks at where outcomes lie", ((together, "LOCATION_LOOKS", 1),)),
        Part("few columns matter", ((rules, "EFFECT_COLUMNS", EVERY_COLUMN), (rules, "OUTCOME_COLUMNS", EVERY_COLUMN))),
        Part(
            "how large effects are is averaged over",
            ((rules, "EFFECT_SIZES", np.ones(1)), (rules, "OUTCOME_SIZES", np.ones(1))),
        ),
        Part("effects in the outcome's columns", ((belief, "UNRELATED", 1.0),)),
        Part("laws for jumps and waves", ((belief, "LAWS", GENTLE_ONLY),)),
        Part("degrees that join later", ((rules, "HIGHEST_DEGREE", 0),)),
        Part("one regression to the end", ((Pipeline, "_one_regression", False),)),
        Part("noise where it costs least", ((rounds, "water_filled", _evenly),)),
        Part("clips by which noise outweighs which", ((rules, "gentleness", lambda n, mu, effective: 1.0),)),
        Part("slopes are learned", ((rounds, "_with_slopes", lambda block, last, step, row: block),)),
        Part("replace-one with a public n", asked=(("neighbours", "add-or-remove-one"),)),
    )
}


DATA: dict[str, dict[str, Callable[[int], Trial]]] = {
    "Datasets 1, 2": {name: SOURCES[name] for name in ("synthetic 1, 3000", "synthetic 2, 3000")},
    "ACIC16": {name: SOURCES[name] for name in ("ACIC16 1", "ACIC16 4", "ACIC16 5", "ACIC16 6")},
    "steps": {name: SOURCES[name] for name in ("steps, 2 columns", "steps, 10 columns")},
    "products": {"products": product_trial},
    "correlated columns": {"correlated columns": correlated_trial},
    "tuning trials": {"tuning trials": partial(tuning_trial, n=3000, width=30)},
    "clinic trials": {"clinic trials": partial(clinic_trial, n=4400, width=79)},
}


@dataclass(frozen=True)
class Change:
    """By how much the logarithm of the error grows without a part, in the mean over data, budgets and seeds; and the
    standard error of that."""

    part: str
    data: str
    mean: float
    error: float

    @property
    def percent(self) -> tuple[float, float]:
        """By how much the typical error grows, with its standard error."""
        return 100 * math.expm1(self.mean), 100 * math.exp(self.mean) * self.error


def measure(
    seeds: range, parts: Iterable[str], data: Iterable[str], epsilons: Iterable[float], progress: Progress
) -> Iterator[Change]:
    parts, groups, epsilons = list(parts), list(data), list(epsilons)
    for number, group in enumerate(groups):
        cells = [(make, epsilon, seed) for make in DATA[group].values() for epsilon in epsilons for seed in seeds]
        with_all = []
        for place, cell in enumerate(cells):
            progress(f"{group}, with all parts", (number + place / len(cells) / (len(parts) + 1)) / len(groups))
            with_all.append(_error(*cell, Part("none")))
        for place, name in enumerate(parts, start=1):
            progress(f"{group} without {name}", (number + place / (len(parts) + 1)) / len(groups))
            change = np.log([_error(*cell, PARTS[name]) for cell in cells]) - np.log(with_all)
            yield Change(name, group, float(change.mean()), float(change.std() / math.sqrt(len(change))))


def _error(make: Callable[[int], Trial], epsilon: float, seed: int, part: Part) -> float:
    trial = part.declared(make(seed))
    estimator = PrivateCATE(trial.schema, epsilon=epsilon, delta=DELTA, random_state=seed, **dict(part.asked))
    with part.taken_away():
        effect = estimator.fit(trial.Y, trial.T, X=trial.X).effect(trial.points)
    return float(np.sqrt(np.mean((effect - trial.tau) ** 2)))
