"""The one container for private rows.

Rows are encoded by the schema, clipped to it, and bounded per person. An absent row (a cell was missing,
unparsable or of an unknown level) is kept as a row that contributes zero to every statistic.
"""

from hashlib import blake2b
from typing import Any, NoReturn

import numpy as np

from dpcate.encoding import cell_text, encode_covariates, encode_outcome, encode_treatment
from dpcate.errors import DataError
from dpcate.schema import Schema
from dpcate.tables import Columns, as_column, as_columns, read_columns


class Rows:
    """Encoded rows: `x` in the unit box, `treated` in {0, 1}, `outcome` in its range, `present`, `person`.

    Its repr shows nothing, it cannot be pickled or copied, and it holds no column of the source table.
    """

    __slots__ = ("outcome", "person", "person_key", "persons", "present", "treated", "x")

    def __init__(
        self,
        *,
        x: np.ndarray,
        treated: np.ndarray,
        outcome: np.ndarray,
        present: np.ndarray,
        person: np.ndarray,
        person_key: np.ndarray,
    ) -> None:
        self.x, self.treated, self.outcome, self.present = x, treated, outcome, present
        self.person = person  # number of the person who owns the row, by first appearance
        self.person_key = person_key  # per person: a number made from that person's own data alone
        self.persons = len(person_key)

    def person_numbers(self, chosen: np.ndarray) -> np.ndarray:
        """Who owns each of the chosen rows, numbered anew from 0."""
        return np.unique(self.person[chosen], return_inverse=True)[1]

    def __repr__(self) -> str:
        return "<Rows: sealed>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows are sealed: they cannot be copied or written to disk")


def read_rows(schema: Schema, Y: Any = None, T: Any = None, X: Any = None, table: Any = None) -> Rows:
    """Rows from one table, or from outcome, treatment and covariates side by side."""
    if (table is not None) == any(part is not None for part in (Y, T, X)):
        raise DataError("give either table=..., or Y, T and X=...")
    columns = read_columns(table, schema.columns) if table is not None else _side_by_side(schema, Y, T, X)
    return _bounded(schema, columns, *_encoded(schema, columns))


def _side_by_side(schema: Schema, Y: Any, T: Any, X: Any) -> Columns:
    if Y is None or T is None or X is None:
        raise DataError("Y, T and X are all needed")
    if schema.person is not None:
        raise DataError("a schema with a person column needs table=..., which holds that column")
    columns = {
        **as_columns(X, list(schema.covariates)),
        schema.treatment.name: as_column(T, "T"),
        schema.outcome.name: as_column(Y, "Y"),
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError("Y, T and X must have the same number of rows")
    return columns


def _encoded(schema: Schema, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    x, known_x = encode_covariates(schema, columns)
    treated, known_t = encode_treatment(schema.treatment, columns[schema.treatment.name])
    outcome, known_y = encode_outcome(schema.outcome, columns[schema.outcome.name])
    return x, treated, outcome, known_x & known_t & known_y


def _bounded(
    schema: Schema,
    columns: Columns,
    x: np.ndarray,
    treated: np.ndarray,
    outcome: np.ndarray,
    present: np.ndarray,
) -> Rows:
    """Number the persons and keep the first `max_rows_per_person` rows of each; a nameless row is absent."""
    if schema.person is None:
        own_data = np.column_stack([x, treated, outcome, present])
        return Rows(
            x=x,
            treated=treated,
            outcome=outcome,
            present=present,
            person=np.arange(len(x)),
            person_key=_hash_rows(own_data),
        )
    texts = [cell_text(cell) for cell in columns[schema.person]]
    present = present & np.array([text != "" for text in texts], dtype=bool)
    number: dict[tuple[str, int], int] = {}
    owners = [(text, 0 if text else row) for row, text in enumerate(texts)]  # no name: a person of its own
    person = np.array([number.setdefault(owner, len(number)) for owner in owners], dtype=int)
    kept = _occurrence(person) < schema.max_rows_per_person
    keys = np.array([_hash_text(text) for text, _ in number], dtype=np.uint64)
    return Rows(
        x=x[kept],
        treated=treated[kept],
        outcome=outcome[kept],
        present=present[kept],
        person=person[kept],
        person_key=keys,
    )


def _occurrence(person: np.ndarray) -> np.ndarray:
    """For each row: how many earlier rows the same person has."""
    order = np.argsort(person, kind="stable")
    sorted_person = person[order]
    starts = np.r_[True, sorted_person[1:] != sorted_person[:-1]]
    start_index = np.maximum.accumulate(np.where(starts, np.arange(len(person)), 0))
    occurrence = np.empty(len(person), dtype=int)
    occurrence[order] = np.arange(len(person)) - start_index
    return occurrence


def _hash_rows(own_data: np.ndarray) -> np.ndarray:
    """One 64-bit number per row, from that row alone."""
    key = np.zeros(len(own_data), dtype=np.uint64)
    for column in np.ascontiguousarray(own_data + 0.0).view(np.uint64).T:
        key = mix(key ^ column)
    return key


def _hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def mix(key: np.ndarray) -> np.ndarray:
    """SplitMix64's finaliser: a fixed public bijection that scatters 64-bit numbers."""
    with np.errstate(over="ignore"):
        key = (key + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return key ^ (key >> np.uint64(31))
