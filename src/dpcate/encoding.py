"""From cells to the unit box, by the schema alone.

A cell that is missing, unparsable, not finite or of an unknown level makes its row absent; values
outside the public bounds are clipped. Neither is reported.
"""

import functools
from typing import Any

import numpy as np
from scipy.stats import qmc

from dpcate.schema import Category, Number, Outcome, Schema, Treatment, level_text
from dpcate.tables import Columns

_SAME_LEVEL = {"0": "false", "1": "true", "false": "0", "true": "1"}


def encode_covariates(schema: Schema, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Covariates in [0, 1]^q and which rows are present; absent rows are zero."""
    blocks, present = [], np.ones(len(next(iter(columns.values()))), dtype=bool)
    for name, covariate in schema.covariates.items():
        block, known = _encode(covariate, columns[name])
        blocks.append(block)
        present &= known
    encoded = np.concatenate(blocks, axis=1)
    encoded[~present] = 0.0
    return encoded, present


def encode_treatment(treatment: Treatment, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """0 for control, 1 for treated, and which rows say either."""
    codes = _codes([treatment.control, treatment.treated], cells)
    return np.maximum(codes, 0).astype(float), codes >= 0


def encode_outcome(outcome: Outcome, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outcome clipped to its public range, and which rows have one."""
    values = numbers(cells)
    known = np.isfinite(values)
    return np.clip(np.where(known, values, outcome.low), outcome.low, outcome.high), known


def _encode(covariate: Number | Category, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(covariate, Category):
        codes = _codes(covariate.levels, cells)
        return (codes[:, None] == np.arange(covariate.width)).astype(float), codes >= 0
    values = numbers(cells)
    known = np.isfinite(values)
    return place_of(covariate, np.where(known, values, covariate.low))[:, None], known


def place_of(number: Number, values: np.ndarray) -> np.ndarray:
    """Where values lie on a covariate's scale: 0 at its low bound, 1 at the high one, ½ at the typical value."""
    clipped = np.clip(values, number.low, number.high)
    place = np.clip((clipped - number.low) / (number.high - number.low), 0.0, 1.0)
    if number.bend == 0:
        return place
    return np.clip(np.log1p(place * np.expm1(number.bend)) / number.bend, 0.0, 1.0)


def value_at(number: Number, places: np.ndarray) -> np.ndarray:
    """The values at places on a covariate's scale."""
    share = np.expm1(number.bend * places) / np.expm1(number.bend) if number.bend else places
    return number.low + share * (number.high - number.low)


def numbers(cells: np.ndarray) -> np.ndarray:
    """Cells as numbers, NaN where a cell is none."""
    if cells.dtype.kind in "fiub":
        return cells.astype(float)
    return np.array([_number(cell) for cell in cells], dtype=float)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _codes(levels: Any, cells: np.ndarray) -> np.ndarray:
    """The position of each cell among the levels, −1 where it is none of them."""
    position = {level_text(level): code for code, level in enumerate(levels)}
    if {"0", "1"} <= position.keys() or {"false", "true"} <= position.keys():
        twins = {_SAME_LEVEL[text]: code for text, code in position.items() if text in _SAME_LEVEL}
        position = {**twins, **position}
    if cells.dtype.kind in "fiub":
        values, inverse = np.unique(cells, return_inverse=True)
        return np.array([position.get(cell_text(value), -1) for value in values], dtype=int)[inverse]
    return np.array([_code(position, cell) for cell in cells], dtype=int)


def _code(position: dict[str, int], cell: Any) -> int:
    text = cell_text(cell)
    return position.get(text, position.get(cell_text(_number(text)), -1))


def cell_text(cell: Any) -> str:
    """The text by which a cell is compared with levels and names, empty where the cell is missing."""
    try:
        missing = cell is None or bool(cell != cell)
        return "" if missing else level_text(cell.item() if isinstance(cell, np.generic) else cell)
    except (TypeError, ValueError):  # a missing value that refuses comparison, a nested value
        return ""


def reference_points(schema: Schema, count: int = 1024) -> np.ndarray:
    """Public points that fill the schema's box evenly, every level of a category equally often."""
    return placed(schema, _even_places(len(schema.covariates), count))


@functools.lru_cache(maxsize=16)
def _even_places(width: int, count: int) -> np.ndarray:
    """So many points in a unit box of that width; whoever asks gets the same ones."""
    places = qmc.Sobol(width, scramble=True, rng=np.random.default_rng(0)).random(count)
    places.flags.writeable = False
    return places


def placed(schema: Schema, places: np.ndarray) -> np.ndarray:
    """Encoded covariates of points given by one number in [0, 1] per covariate: a value, or which of the levels."""
    blocks = []
    for covariate, place in zip(schema.covariates.values(), places.T, strict=True):
        level = np.minimum((place * covariate.width).astype(int), covariate.width - 1)
        one_hot = (level[:, None] == np.arange(covariate.width)).astype(float)
        blocks.append(one_hot if isinstance(covariate, Category) else place[:, None])
    return np.concatenate(blocks, axis=1)


def decode_covariates(schema: Schema, x: np.ndarray) -> dict[str, np.ndarray]:
    """Encoded covariates back in the units of the schema, by name."""
    columns, start = {}, 0
    for name, covariate in schema.covariates.items():
        block = x[:, start : start + covariate.width]
        start += covariate.width
        if isinstance(covariate, Category):
            columns[name] = np.array(covariate.levels, dtype=object)[block.argmax(axis=1)]
        else:
            columns[name] = value_at(covariate, block[:, 0])
    return columns
