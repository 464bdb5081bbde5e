"""The default where nobody would choose to use it: does an effect stay finite and within the outcome's range?

A configuration has 50 to 50,000 rows, 1 to 200 columns (uniform, skewed, binary, constant, copies of the first), a rare
arm or not, outcomes with tails far beyond what is declared, ε from 0.01 to 50, and any split.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpcate import PrivateCATE
from dpcate.bench.run import Progress
from dpcate.schema import Number, Outcome, Schema

BOUND = 5.0  # outcomes are declared to lie between −BOUND and BOUND
ASKED = 200
KINDS = ("uniform", "skewed", "binary", "constant", "copied")
SPLITS = ("crossfit", "disjoint", "none")


@dataclass(frozen=True)
class Configuration:
    rows: int
    columns: int
    treated: float
    spread: float
    epsilon: float
    split: str
    seed: int

    @classmethod
    def drawn(cls, seed: int, most_rows: int, most_columns: int) -> "Configuration":
        rng = np.random.default_rng([11, seed])
        rows, columns, epsilon = (
            float(np.exp(rng.uniform(np.log(low), np.log(high))))
            for low, high in ((50, most_rows), (1, most_columns + 0.99), (0.01, 50))
        )
        return cls(
            rows=int(rows),
            columns=int(columns),
            treated=float(rng.choice([0.01, 0.1, 0.5, 0.97])),
            spread=float(rng.choice([1.0, 30.0])),
            epsilon=epsilon,
            split=str(rng.choice(SPLITS)),
            seed=seed,
        )


def unsound(seeds: range, most_rows: int, most_columns: int, progress: Progress) -> Iterator[Configuration]:
    """The configurations whose effects or intervals are not finite, not ordered or beyond the outcome's range."""
    for number, seed in enumerate(seeds):
        configuration = Configuration.drawn(seed, most_rows, most_columns)
        progress(f"{configuration.rows} rows, {configuration.columns} columns", number / len(seeds))
        if not are_sound(*answers(configuration)):
            yield configuration


def are_sound(effect: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    finite = np.isfinite([effect, low, high]).all()
    return bool(finite and (low <= high).all() and np.abs(effect).max() <= 2 * BOUND)


def answers(configuration: Configuration) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Effects and the ends of their intervals at points anywhere within the bounds."""
    rng = np.random.default_rng([12, configuration.seed])
    n, columns = configuration.rows, configuration.columns
    x = _columns(rng, n, columns)
    treated = rng.random(n) < configuration.treated
    y = configuration.spread * rng.standard_t(2, n) + 3 * treated * x[:, 0]
    schema = Schema(
        covariates={f"x{j}": Number(0, 1) for j in range(columns)},
        treatment="treated",
        outcome=Outcome("outcome", low=-BOUND, high=BOUND),
    )
    model = PrivateCATE(
        schema, epsilon=configuration.epsilon, delta=1e-5, split=configuration.split, random_state=configuration.seed
    ).fit(y, treated, X=x)
    points = rng.random((ASKED, columns))
    return model.effect(points), *model.effect_interval(points)


def _columns(rng: np.random.Generator, n: int, columns: int) -> np.ndarray:
    def column(kind: str) -> np.ndarray:
        match kind:
            case "uniform":
                return rng.random(n)
            case "skewed":
                return rng.beta(0.3, 6, n)
            case "binary":
                return rng.integers(0, 2, n).astype(float)
            case _:
                return np.full(n, 0.3)

    kinds = rng.choice(KINDS, columns)
    x = np.column_stack([column(kind) for kind in kinds])
    x[:, kinds == "copied"] = x[:, :1]
    return x
