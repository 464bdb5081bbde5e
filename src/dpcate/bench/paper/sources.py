"""What each experiment is run on: rows, public points to ask about, and what their figure is drawn along.

Points are public for the medical data: a walk along hematocrit with all else at the middle of its range, and genes
that are all expressed alike. The paper asks about patients, whose covariates would then be in the figure.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcate import datasets
from dpcate.datasets import Dataset
from dpcate.datasets.mimic import mimic_schema
from dpcate.datasets.tcga import EFFECT, EXPRESSION
from dpcate.errors import InputError
from dpcate.files import read_bytes
from dpcate.plots import profile

QUERIES = 300
ROWS, QUICK_ROWS = 3000, 800
STAND_IN_GENES = 50
HEMATOCRIT = "hematocrit"


@dataclass(frozen=True, kw_only=True)
class UserFiles:
    """Credentialed data that only users have; `genes` is a public list, one name per line."""

    mimic: Path | None = None
    tcga: Path | None = None
    genes: Path | None = None

    def __post_init__(self) -> None:
        if self.tcga is not None and self.genes is None:
            raise InputError("the TCGA file needs a public list of its genes too, one name per line")

    def of(self, source: str) -> Path | None:
        return {"mimic": self.mimic, "tcga": self.tcga}.get(source)


@dataclass(frozen=True, kw_only=True, repr=False)
class Questions:
    """`points` are what is asked about, `x` where each is drawn, `truth` the effect there if it is known."""

    train: Dataset
    points: Any
    x: np.ndarray
    truth: np.ndarray | None


def questions(source: str, seed: int, files: UserFiles, quick: bool) -> Questions:
    rows = QUICK_ROWS if quick else ROWS
    if source in ("dataset1", "dataset2"):
        return _synthetic(int(source[-1]), rows, seed)
    if source == "mimic":
        return _mimic(seed, rows, files.mimic)
    return _tcga(seed, rows, files)


def _synthetic(which: int, rows: int, seed: int) -> Questions:
    """300 rows held out of 3,000, as in the paper; a tenth of fewer."""
    data, held_out = datasets.synthetic(which, rows, seed), rows // 10
    return Questions(
        train=_without_truth(data, slice(held_out, None)),
        points=data.X[:held_out],
        x=data.X[:held_out, 0],
        truth=data.tau[:held_out],
    )


def _mimic(seed: int, rows: int, path: Path | None) -> Questions:
    data = _mimic_stand_in(seed, rows) if path is None else datasets.mimic_extract(path, seed)
    points = profile(data.schema, HEMATOCRIT, QUERIES)
    truth = _stand_in_effect(points) if path is None else None
    return Questions(train=data, points=points, x=points[HEMATOCRIT], truth=truth)


def _tcga(seed: int, rows: int, files: UserFiles) -> Questions:
    if files.tcga is None:
        data = _tcga_stand_in(seed, rows)
    else:
        genes = read_bytes(files.genes, "list of genes").decode().split()
        data = datasets.tcga_expression(files.tcga, genes, seed)
    columns = len(data.schema.covariates)
    level = np.linspace(EXPRESSION.low, EXPRESSION.high, QUERIES)
    return Questions(
        train=_without_truth(data, slice(None)),
        points=np.repeat(level[:, None], columns, axis=1),
        x=level * columns,
        truth=np.full(QUERIES, EFFECT),
    )


def _mimic_stand_in(seed: int, rows: int) -> Dataset:
    """Rows of MIMIC-III's schema, drawn: bell-shaped around what is common in intensive care, and confounded."""
    rng, schema = np.random.default_rng(seed), mimic_schema()
    typical = {
        "heart rate": (85, 15),
        "sodium": (138, 4),
        "red blood cell count": (3.5, 0.6),
        "glucose": (140, 40),
        HEMATOCRIT: (31, 5),
        "respiratory rate": (19, 5),
        "age": (64, 15),
    }
    columns = {name: rng.normal(*centre, rows) for name, centre in typical.items()}
    columns["male"] = (rng.random(rows) < 0.56).astype(float)
    columns = {name: np.clip(columns[name], c.low, c.high) for name, c in schema.covariates.items()}
    sick = (columns["respiratory rate"] - 19) / 10 - (columns[HEMATOCRIT] - 31) / 20
    treated = (rng.random(rows) < 1 / (1 + np.exp(-sick))).astype(float)
    outcome = columns["red blood cell count"] + treated * _stand_in_effect(columns) + rng.normal(0, 0.3, rows)
    table = {**columns, "vent": treated, schema.outcome.name: np.clip(outcome, 0, 8)}
    return Dataset.from_table(table, schema, note="drawn by a formula; nobody's data")


def _stand_in_effect(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return 0.5 + 0.02 * (np.asarray(columns[HEMATOCRIT], dtype=float) - 31)


def _tcga_stand_in(seed: int, rows: int) -> Dataset:
    """Drawn expression of a few genes, through the same reader and formulas as the real file."""
    genes = [f"gene{number}" for number in range(STAND_IN_GENES)]
    expression = np.clip(np.random.default_rng(seed).normal(8, 3, (rows, len(genes))), 0, 20)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "expression.npz"
        np.savez(path, expression=expression, genes=np.array(genes))
        return datasets.tcga_expression(path, genes, seed)


def _without_truth(data: Dataset, rows: slice) -> Dataset:
    kept = {name: getattr(data, name)[rows] for name in ("X", "T", "Y")}
    return replace(data, **kept, tau=None, propensity=None, outcome_control=None)
