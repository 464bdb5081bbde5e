"""Which second stage and split a plan recommends, and how many rows a wished width takes."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import get_args

import numpy as np
from scipy.optimize import brentq

from dpcate.data import SplitKind
from dpcate.errors import DpcateError, InputError
from dpcate.pipeline import FEWEST_PERSONS, Progress
from dpcate.planning.question import Question
from dpcate.planning.simulation import QUICK, Prediction, predict

STAGES = ("moments", "features", "kernel", "network")
CLEARLY = 0.95  # of the error of what was asked for: less of a gain is within what a quick look can tell
MOST_ROWS = 10**8  # that are searched
STEP, CLOSE = math.log(8), 0.02  # in log n: how far the search goes at once, and how exactly
AROUND = np.linspace(-0.6, 0.6, 9)  # where, in log n, a line is drawn


@dataclass(frozen=True)
class Option:
    """A second stage with a split, and what to expect of it, or why it cannot be had."""

    second_stage: str
    split: str
    prediction: Prediction | None
    refusal: str | None = None

    @property
    def name(self) -> str:
        return f"{self.second_stage} with split {self.split}"


@dataclass(frozen=True)
class Recommendation:
    second_stage: str
    split: str
    reason: str


def options(question: Question, prediction: Prediction, stages: Sequence[str], report: Progress) -> list[Option]:
    """The asked one first; then the other stages with its split, then the best of them with the other splits."""
    others = [stage for stage in stages if stage != question.second_stage]
    splits = [split for split in get_args(SplitKind) if split != question.split]
    found = [Option(question.second_stage, question.split, prediction)]

    def look(**settings: str) -> None:
        names = {"second_stage": question.second_stage, "split": question.split, **settings}
        report(f"{names['second_stage']}, split {names['split']}", len(found) / (1 + len(others) + len(splits)))
        found.append(_option(question, names, settings))

    for stage in others:
        look(second_stage=stage)
    best = _best(found).second_stage
    stage = {} if best == question.second_stage else {"second_stage": best}
    for split in splits:
        look(**stage, split=split)
    return found


def _option(question: Question, names: dict[str, str], settings: dict[str, str]) -> Option:
    try:
        return Option(**names, prediction=predict(question.instead(**settings), QUICK))
    except DpcateError as error:
        return Option(**names, prediction=None, refusal=str(error))


def recommendation(found: Sequence[Option]) -> Recommendation:
    """The least error on the stand-ins, unless what was asked for is as good within what can be told."""
    asked, best = found[0], _best(found)
    error, least = asked.prediction.error, best.prediction.error
    if least >= CLEARLY * error:
        others = [option for option in found if option.prediction and option is not asked]
        beaten = min(others, key=lambda option: option.prediction.error, default=None)
        against = f"; next is {beaten.name} with {beaten.prediction.error:.3g}" if beaten else ""
        return Recommendation(
            asked.second_stage, asked.split, f"nothing is clearly better than its error of {error:.3g}{against}"
        )
    return Recommendation(
        best.second_stage, best.split, f"an error of {least:.3g}, against {error:.3g} for {asked.name}"
    )


def _best(found: Sequence[Option]) -> Option:
    return min((option for option in found if option.prediction), key=lambda option: option.prediction.error)


def rows_for(question: Question, width: float, report: Progress) -> int:
    """About how many rows give intervals of this mean width: the root of log width in log n, for width falls with n.

    A line through the widths around it evens out what single simulations miss.
    """
    if isinstance(width, bool) or not isinstance(width, int | float) or not 0 < width < math.inf:
        raise InputError("the wished width must be a positive number")
    per_person = question.schema.max_rows_per_person
    fewest = FEWEST_PERSONS * per_person
    most = int(min(MOST_ROWS, question.pipeline.most_persons * per_person))

    @cache
    def excess(log_rows: float) -> float:
        rows = round(math.exp(log_rows))
        report(f"width of {rows:,} rows", 0.9)
        return math.log(predict(dataclasses.replace(question, rows=rows), QUICK).width / width)

    bottom, top = math.log(fewest), math.log(most)
    low = high = min(max(math.log(question.rows), bottom), top)
    while excess(high) > 0:
        if high == top:
            raise InputError(
                f"no number of rows up to {most:,} gives intervals as narrow as {width:g} here: raise epsilon, wish "
                "for less, or choose another second stage"
            )
        low, high = high, min(high + STEP, top)
    while excess(low) <= 0:
        if low == bottom:
            return fewest
        low, high = max(low - STEP, bottom), low
    near = brentq(excess, low, high, xtol=CLOSE)
    around = np.unique(np.clip(near + AROUND, bottom, top))
    slope, level = np.polyfit(around - near, [excess(log_rows) for log_rows in around], 1)
    found = near - level / slope if slope < 0 else near
    return min(most, _rounded_up(math.exp(np.clip(found, around[0], around[-1]))))


def _rounded_up(rows: float) -> int:
    """To two digits: more would pretend to know."""
    unit = 10 ** max(0, math.floor(math.log10(rows)) - 1)
    return unit * math.ceil(rows / unit)
