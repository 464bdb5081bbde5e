"""What `dpcate.plan` predicts against what repeated fits show, on people that the planner did not make up.

The people here share the planner's declared guesses (sd of outcome and effect, share of treated, even covariates) and
nothing else: another generator, other shapes of effect and outcome, other seeds, other points, all rows, no scaling.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dpcate import PrivateCATE
from dpcate.planning import Assumptions, Question, predict
from dpcate.schema import Number, Outcome, Schema

DELTA, SPAN, SD, EFFECT_SD = 1e-6, 6.0, 1.0, 0.25
POINTS = 400
TABLES, FITS = 40, 4  # of each table; with fewer, noise may look smaller than it is, and well known: its tails are long
EPSILONS = (0.3, 3.0)
SIZES = ((1000, 2), (1000, 6), (4000, 2), (20_000, 2))
GRID = {"moments": SIZES, "features": SIZES, "kernel": ((500, 2), (500, 6), (1500, 2)), "network": SIZES}


@dataclass(frozen=True)
class Cell:
    second_stage: str
    rows: int
    columns: int
    epsilon: float


@dataclass(frozen=True)
class Compared:
    """Noise and mean width, predicted and simulated, and the simulation's own relative standard error."""

    cell: Cell
    noise: float
    simulated_noise: float
    error: float
    width: float
    simulated_width: float

    @property
    def ratio(self) -> float:
        return self.noise / self.simulated_noise


def cells(stages: Iterable[str] = tuple(GRID)) -> list[Cell]:
    return [Cell(stage, *size, epsilon) for stage in stages for size in GRID[stage] for epsilon in EPSILONS]


def compare(chosen: Iterable[Cell]) -> Iterator[Compared]:
    for cell in chosen:
        prediction = predict(question_of(cell))
        noise, error, width = simulated(cell)
        yield Compared(cell, prediction.noise_sd, noise, error, prediction.width, width)


def question_of(cell: Cell) -> Question:
    schema = _schema(cell.columns)
    return Question(
        schema=schema,
        rows=cell.rows,
        epsilon=cell.epsilon,
        delta=DELTA,
        assumptions=Assumptions.of(schema, SD, EFFECT_SD, 0.5),
        settings={"second_stage": cell.second_stage},
    )


def simulated(cell: Cell) -> tuple[float, float, float]:
    """Noise sd over fits of the same rows, root mean square over rows and points; its standard error; mean width."""
    variances, widths = [], []
    points = np.random.default_rng(99).random((POINTS, cell.columns))
    for seed in range(TABLES):
        X, T, Y = _people(cell.rows, cell.columns, seed)
        effects = []
        for fit in range(FITS):
            model = PrivateCATE(
                _schema(cell.columns),
                epsilon=cell.epsilon,
                delta=DELTA,
                second_stage=cell.second_stage,
                random_state=10_000 + FITS * seed + fit,
            ).fit(Y, T, X=X)
            effects.append(model.effect(points))
        low, high = model.effect_interval(points)
        widths.append(float(np.mean(high - low)))
        variances.append(float(np.var(effects, axis=0, ddof=1).mean()))
    return math.sqrt(np.mean(variances)), _error(variances), float(np.mean(widths))


def _error(variances: list[float]) -> float:
    return float(np.std(variances, ddof=1) / math.sqrt(len(variances)) / (2 * np.mean(variances)))


def _schema(columns: int) -> Schema:
    return Schema(
        covariates={f"x{j}": Number(0, 1) for j in range(columns)},
        treatment="treated",
        outcome=Outcome("outcome", low=-SPAN / 2, high=SPAN / 2),
    )


def _people(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A steep step of one column as the effect, a line and a product as the outcome, errors between bell and flat."""
    rng = np.random.default_rng([31, seed])
    X = rng.random((rows, columns))
    step = np.tanh(4 * (X[:, 0] - 0.5))
    effect = EFFECT_SD * step / math.sqrt(1 - math.tanh(2) / 2)
    outcome = 0.3 * math.sqrt(12) * (X[:, -1] - 0.5) + 0.3 * 12 * (X[:, 0] - 0.5) * (X[:, -1] - 0.5)
    T = (rng.random(rows) < 0.5).astype(float)
    explained = float(np.var(outcome)) + EFFECT_SD**2 / 4
    errors = math.sqrt(SD**2 - explained) * rng.uniform(-1, 1, (rows, 3)).sum(axis=1)
    return X, T, np.clip(outcome + (T - 0.5) * effect + errors, -SPAN / 2, SPAN / 2)
