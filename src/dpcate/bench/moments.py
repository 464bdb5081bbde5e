"""How the default does on random trials: the comparison behind its rules, and a held-out one for the end."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dpcate import PrivateCATE, datasets
from dpcate.bench.clinic import clinic_trial
from dpcate.bench.problems import Trial, held_out_trial, tuning_trial
from dpcate.files import write_atomically
from dpcate.plots import picture

CELLS = (
    (3000, 2, 0.1), (3000, 2, 0.5), (3000, 5, 1.0), (3000, 30, 0.1), (3000, 30, 0.5), (3000, 30, 1.0), (3000, 30, 5.0),
    (4000, 60, 1.0), (10_000, 10, 0.5), (10_000, 30, 2.0),
)  # fmt: skip
CLINIC_CELLS = tuple((4400, 79, epsilon) for epsilon in (0.1, 0.5, 1.0, 5.0, 10.0))
TRIALS = {"tuning": (tuning_trial, CELLS), "clinic": (clinic_trial, CLINIC_CELLS), "held-out": (held_out_trial, CELLS)}
DELTA = 1e-5


@dataclass(frozen=True)
class CellResult:
    """Errors over the sd of the effect (1.0 is the best constant): geometric and quadratic mean; coverage, width."""

    rows: int
    columns: int
    epsilon: float
    typical: float
    quadratic: float
    coverage: float
    width: float


def compare_cells(seeds: range, trials: str) -> Iterator[CellResult]:
    make, cells = TRIALS[trials]
    for rows, columns, epsilon in cells:
        runs = np.array([_run(make(seed, rows, columns), seed, epsilon) for seed in seeds])
        error, covered, width = runs.T
        quadratic = float(np.sqrt(np.mean(error**2)))
        typical = float(np.exp(np.log(error).mean()))
        yield CellResult(
            rows, columns, epsilon, typical, quadratic, float(covered.mean()), float(width.mean() / quadratic)
        )


def _run(trial: Trial, seed: int, epsilon: float) -> tuple[float, float, float]:
    model = PrivateCATE(trial.schema, epsilon=epsilon, delta=DELTA, random_state=1000 + seed).fit(
        trial.Y, trial.T, X=trial.X
    )
    low, high = model.effect_interval(trial.points)
    scale = max(trial.tau.std(), 0.05)  # a curve may be flat where the rows are
    error = float(np.sqrt(np.mean((model.effect(trial.points) - trial.tau) ** 2)) / scale)
    return min(error, 3.0), float(np.mean((low <= trial.tau) & (trial.tau <= high))), float(np.mean(high - low) / scale)


def draw_curves(path: Path, seed: int) -> None:
    """Dataset 1's effect along its first covariate, with 90% bands, at three budgets: the figure of docs/moments.md."""
    data, grid = datasets.synthetic(1, 3000, seed=seed), np.linspace(0, 1, 200)
    points = np.column_stack([grid, np.full(200, 0.5)])
    figure = Figure(figsize=(10, 3.4), layout="constrained", dpi=110)
    for axes, epsilon in zip(figure.subplots(1, 3, sharey=True), (0.1, 0.5, 5.0), strict=True):
        model = PrivateCATE(data.schema, epsilon=epsilon, delta=DELTA, random_state=seed).fit(data.Y, data.T, X=data.X)
        low, high = model.effect_interval(points)
        axes.fill_between(grid, low, high, color="#1f5aa6", alpha=0.2, label="90% interval")
        axes.plot(grid, model.effect(points), color="#1f5aa6", label="released effect")
        axes.plot(grid, np.exp(2 * grid) + 3 * np.sin(4 * grid), color="#c0392b", linestyle="--", label="truth")
        axes.set_title(f"ε = {epsilon:g}")
        axes.set_xlabel("x0")
    figure.axes[0].set_ylabel("effect on the outcome")
    figure.axes[0].legend(frameon=False, fontsize=8)
    write_atomically(path, picture(figure))
