"""TCGA as in the paper: real gene expression, a treatment drawn from ten genes, a constant effect.

s: the sum of ten genes, brought to [0, 1] by their public bounds;  A ~ Bernoulli(0.1 + 0.8 s);  Y = θA + s + noise,
noise ~ U[−1,1]. The paper prints neither the link nor the outcome; these are the plainest ones with overlap. Where it
takes the 4,000 genes that vary most in the rows, here the list is public: from another study, or from a panel.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np

from dpcate.datasets.dataset import Dataset, whole_seed
from dpcate.encoding import numbers
from dpcate.errors import DataError, InputError
from dpcate.schema import Number, Outcome, Schema
from dpcate.tables import Columns, read_columns

DRIVERS = 10
EFFECT = 1.0
EXPRESSION = Number(0, 20, unit="log₂(1 + normalised count)")
NOTE = (
    "The bounds of expression are those of its scale (a normalised count is below 2²⁰); the outcome's follow from the "
    "formulas that make it. None is taken from the rows."
)

_AT_ONCE = 500  # columns of a file that are parsed together: text takes fifty times the memory of numbers


def tcga_expression(path: str | Path, genes: Sequence[str], seed: int, *, expression: Number = EXPRESSION) -> Dataset:
    """The expression of a public list of genes, one row per patient; the first ten genes decide the treatment.

    A .csv or .parquet file has a column per gene; an .npz file has the arrays `expression` (patients × genes) and
    `genes` (their names).
    """
    genes = list(genes)
    if len(set(genes)) < len(genes) or len(genes) < DRIVERS:
        raise InputError(f"genes must be at least {DRIVERS} different column names, from a public list")
    rng = np.random.default_rng(whole_seed(seed))
    X = np.column_stack(list(_columns(Path(path), genes)))
    unit = np.clip((X[:, :DRIVERS] - expression.low) / (expression.high - expression.low), 0, 1)
    drive = unit.mean(axis=1)
    propensity = 0.1 + 0.8 * drive
    T = (rng.uniform(size=len(X)) < propensity).astype(float)
    return Dataset(
        X=X,
        T=T,
        Y=EFFECT * T + drive + rng.uniform(-1, 1, len(X)),
        tau=np.full(len(X), EFFECT),
        propensity=propensity,
        outcome_control=drive,
        schema=tcga_schema(genes, expression),
        note=NOTE,
    )


def tcga_schema(genes: Sequence[str], expression: Number = EXPRESSION) -> Schema:
    return Schema(
        covariates=dict.fromkeys(genes, expression),
        treatment="treated",
        outcome=Outcome("outcome", low=-1, high=EFFECT + 2),
    )


def _columns(path: Path, genes: Sequence[str]) -> Iterator[np.ndarray]:
    source = _archive(path) if path.suffix.lower() == ".npz" else path
    for start in range(0, len(genes), _AT_ONCE):
        yield from map(numbers, read_columns(source, genes[start : start + _AT_ONCE]).values())


def _archive(path: Path) -> Columns:
    """The columns of an .npz file by gene; pickled arrays are refused."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            values, names = archive["expression"], archive["genes"]
    except (OSError, EOFError, KeyError, TypeError, ValueError, AttributeError, BadZipFile, ZlibError):
        values, names = np.empty(0), np.empty(0)
    fits = values.ndim == 2 and values.dtype.kind in "fiu" and names.dtype.kind == "U" and names.ndim == 1
    if not fits or values.shape[1] != len(names) or len(set(names)) < len(names):
        raise DataError(
            f"the file {path.name!r} cannot be read: an .npz file needs the arrays 'expression' (numbers, patients × "
            "genes) and 'genes' (their different names), without pickled objects"
        )
    return dict(zip(names.tolist(), values.T, strict=True))
