"""`dpcate.plan`: what a budget would buy, before any row is read."""

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import isotonic_regression

from dpcate.errors import InputError
from dpcate.files import require_writable, write_atomically
from dpcate.pipeline import Progress
from dpcate.planning.advice import STAGES, Option, Recommendation, options, recommendation, rows_for
from dpcate.planning.question import Question
from dpcate.planning.simulation import LARGEST_EPSILON, QUICK, Prediction, predict
from dpcate.planning.standin import Assumptions
from dpcate.schema import Schema

CURVE = 10.0 ** np.linspace(-1, 1, 7)  # ε of the curve, in units of the asked one
FORMATS = (".png", ".svg")


@dataclass(frozen=True)
class Plan:
    """The answer; `print` shows it, `to_document` gives plain values, `plot` draws width against ε."""

    question: Question
    prediction: Prediction
    options: tuple[Option, ...]
    recommendation: Recommendation | None
    wished_width: float | None
    rows_needed: int | None

    @cached_property
    def curve(self) -> tuple[tuple[float, Prediction], ...]:
        """(ε, what to expect), a decade to both sides; simulated when it is first asked for."""
        budgets = sorted({min(self.question.epsilon * float(factor), LARGEST_EPSILON) for factor in CURVE})
        points = [predict(dataclasses.replace(self.question, epsilon=e), QUICK) for e in budgets]
        return tuple(zip(budgets, _falling(points), strict=True))

    def plot(self, path: str | Path) -> None:
        """Width against ε, as .png or .svg."""
        from dpcate.plots import picture, width_figure

        path = require_picture(path)
        budgets, widths, noise = zip(*((e, point.width, point.noise_width) for e, point in self.curve), strict=True)
        figure = width_figure(
            np.array(budgets), np.array(widths), np.array(noise), self.question.epsilon, self._title, self._unit
        )
        write_atomically(path, picture(figure, path.suffix.lower()[1:]))

    def to_document(self) -> dict[str, Any]:
        """Plain tables and values, for machines."""
        question = self.question
        return {
            "rows": question.rows,
            "epsilon": question.epsilon,
            "delta": question.delta,
            "neighbours": question.pipeline.budget.neighbours,
            "learner": question.pipeline.learner.name,
            "second_stage": question.second_stage,
            "nuisance": question.pipeline.first_stage.name,
            "split": question.split,
            "alpha": question.alpha,
            "assumptions": dataclasses.asdict(question.assumptions),
            **dataclasses.asdict(self.prediction),
            "options": [_plain(option) for option in self.options],
            "recommendation": None if self.recommendation is None else dataclasses.asdict(self.recommendation),
            "wished_width": self.wished_width,
            "rows_needed": self.rows_needed,
        }

    def __str__(self) -> str:
        text = io.StringIO()
        console = Console(file=text, width=110, no_color=True, highlight=False)
        for part in (self._summary(), self._shares(), self._comparison()):
            if part is not None:
                console.print(part)
        for line in self._remarks():
            console.print(line, markup=False)
        return text.getvalue().rstrip("\n")

    @property
    def _title(self) -> str:
        question = self.question
        return f"{question.second_stage}, split {question.split}, {question.rows:,} rows, δ = {question.delta:g}"

    @property
    def _unit(self) -> str:
        outcome = self.question.schema.outcome
        return f"effect on {outcome.name}" + (f" ({outcome.unit})" if outcome.unit else "")

    def _summary(self) -> Table:
        question, found = self.question, self.prediction
        level = f"{1 - question.alpha:.0%}"
        table = Table("expected", "value", title=f"Plan: ε = {question.epsilon:g}, {self._title}", title_justify="left")
        for name, value in (
            ("noise that privacy adds, sd", found.noise_sd),
            (f"noise that privacy adds, width of a {level} interval", found.noise_width),
            (f"width of the {level} intervals that the release reports", found.width),
            ("error of the effect, everything included", found.error),
        ):
            table.add_row(name, f"{'≤ ' if found.bound else ''}{value:.3g}")
        return table

    def _shares(self) -> Table:
        table = Table("paid for", "rows", "share of μ²", title="How the budget is divided", title_justify="left")
        for share in self.prediction.shares:
            told = "the rest, by training" if share.fraction is None else f"{share.fraction:.1%}"
            table.add_row(share.name, share.rows, told)
        return table

    def _comparison(self) -> Table | None:
        if not self.options:
            return None
        table = Table("second stage", "split", "noise sd", "width", "error", title="Compared", title_justify="left")
        for option in self.options:
            found = option.prediction
            told = [f"{n:.3g}" for n in (found.noise_sd, found.width, found.error)] if found else ["—", "—", "—"]
            table.add_row(option.second_stage, option.split, *told)
        return table

    def _remarks(self) -> list[str]:
        question, assumed, found = self.question, self.question.assumptions, self.prediction
        lines = [f"{option.name}: {option.refusal}." for option in self.options if option.refusal]
        if self.recommendation is not None:
            advice = self.recommendation
            lines.append(f"Recommended: {advice.second_stage} with split {advice.split}: {advice.reason}.")
        if self.rows_needed is not None:
            lines.append(f"Intervals of width {self.wished_width:g} take about {self.rows_needed:,} rows.")
        if question.delta * question.persons >= 1:
            lines.append(f"Choose δ well below 1/n = {1 / question.persons:.2g}.")
        lines.append(
            f"Assumed, not known: outcome sd {assumed.outcome_sd:.4g}, sd of the effect {assumed.effect_sd:.4g}, "
            f"{assumed.treated:.0%} treated, covariates evenly over their ranges. Say better if you know better."
        )
        lines.append(
            f"Simulated: {found.simulated_fits} fits on {found.simulated_rows:,} made-up rows; the noise is known to "
            f"±{found.uncertainty:.0%}. No data was read."
        )
        return lines


def plan(
    schema: Schema,
    *,
    rows: int,
    epsilon: float,
    delta: float = 1e-6,
    width: float | None = None,
    alpha: float = 0.1,
    outcome_sd: float | None = None,
    effect_sd: float | None = None,
    treated: float | None = None,
    compare: Sequence[str] = STAGES,
    progress: Progress | None = None,
    **settings: Any,
) -> Plan:
    """What a fit on `rows` rows within (ε, δ) would give, by simulation on made-up people; no data is read.

    Parameters
    ----------
    schema, epsilon, delta : as for `PrivateCATE`.
    rows : how many rows there will be.
    width : a wished width of intervals; the plan then says how many rows it takes.
    alpha : intervals at level 1 − alpha.
    outcome_sd : a public guess of the outcome's sd; a sixth of its range if None.
    effect_sd : a public guess of how much effects differ between people; a quarter of the outcome's sd if None.
    treated : a public guess of the share of treated; one half if None, and the known propensity where there is one.
    compare : second stages to compare with the asked one; empty for no comparison and no recommendation.
    settings : further parameters of `PrivateCATE`: second_stage, split, learner, nuisance, neighbours, …
    """
    if not isinstance(schema, Schema):
        raise InputError("schema must be a dpcate.Schema; dpcate.Schema.load reads one from a TOML file")
    if isinstance(compare, str) or not set(compare) <= set(STAGES):
        raise InputError(f"compare must be a list of second stages: {', '.join(STAGES)}")
    assumptions = Assumptions.of(schema, outcome_sd, effect_sd, treated)
    question = Question(
        schema=schema,
        rows=rows,
        epsilon=epsilon,
        delta=delta,
        assumptions=assumptions,
        settings=settings,
        alpha=alpha,
    )
    report = progress or (lambda stage, done: None)
    needed = None if width is None else rows_for(question, width, report)
    prediction = predict(question, progress=lambda done: report("noise of the effect", 0.6 * done))
    if not compare:
        return Plan(question, prediction, (), None, width, needed)
    found = options(question, prediction, compare, lambda stage, done: report(stage, 0.6 + 0.4 * done))
    return Plan(question, prediction, tuple(found), recommendation(found), width, needed)


def _falling(points: list[Prediction]) -> list[Prediction]:
    """More budget never means more noise: what quick simulations say otherwise is their own error, and evened out."""
    names = ("noise_sd", "noise_width", "width")
    even = [isotonic_regression([getattr(point, name) for point in points], increasing=False).x for name in names]
    changes = [dict(zip(names, map(float, column), strict=True)) for column in zip(*even, strict=True)]
    return [dataclasses.replace(point, **change) for point, change in zip(points, changes, strict=True)]


def _plain(option: Option) -> dict[str, Any]:
    found = option.prediction
    numbers = {name: None if found is None else getattr(found, name) for name in ("noise_sd", "width", "error")}
    return {"second_stage": option.second_stage, "split": option.split, **numbers, "refusal": option.refusal}


def require_picture(path: str | Path) -> Path:
    """Refuse what cannot be drawn, before anything is simulated for it."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"a picture's name must end in {' or '.join(FORMATS)}")
    require_writable(path)
    return Path(path)
