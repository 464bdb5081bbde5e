"""What every dataset looks like: rows, a schema written before them, and what is known of the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcate.encoding import numbers
from dpcate.errors import InputError
from dpcate.schema import Number, Schema
from dpcate.tables import read_columns

INDICATOR = Number(0, 1, unit="0/1")  # one column of the unit box; as a category it would take two that sum to one


@dataclass(frozen=True, kw_only=True, repr=False)
class Dataset:
    """Rows with their schema and, where known, their true effect and nuisances.

    The columns of X stand in the schema's order. `note` says where the bounds come from.
    """

    X: np.ndarray
    T: np.ndarray
    Y: np.ndarray
    schema: Schema
    note: str
    tau: np.ndarray | None = None
    propensity: np.ndarray | None = None
    outcome_control: np.ndarray | None = None

    @classmethod
    def from_table(cls, table: Any, schema: Schema, *, note: str, **truth: np.ndarray) -> "Dataset":
        """The schema's columns of a table or a file, as numbers; a cell that is none is NaN, and its row absent."""
        columns = {name: numbers(cells) for name, cells in read_columns(table, schema.columns).items()}
        return cls(
            X=np.column_stack([columns[name] for name in schema.covariates]),
            T=columns[schema.treatment.name],
            Y=columns[schema.outcome.name],
            schema=schema,
            note=note,
            **truth,
        )

    @property
    def outcome_treated(self) -> np.ndarray | None:
        if self.outcome_control is None or self.tau is None:
            return None
        return self.outcome_control + self.tau

    @property
    def outcome(self) -> np.ndarray | None:
        """E[Y | X]."""
        if self.outcome_control is None or self.tau is None or self.propensity is None:
            return None
        return self.outcome_control + self.propensity * self.tau

    def __repr__(self) -> str:
        return f"<Dataset: {len(self.schema.covariates)} covariates, rows sealed>"


def whole_seed(seed: Any) -> int:
    """The seed, if every generator takes it; None, which would draw anew at each call, is refused."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError("seed must be a whole number from 0 to 2^32 − 1")
    return int(seed)
