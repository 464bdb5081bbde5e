"""Any table in, plain columns out: arrays, pandas, polars, Arrow, CSV and Parquet.

Cells are never inspected to decide a type, so no single row can decide whether reading succeeds: a CSV is
read as text, and a malformed line counts as a row without values. Errors name columns, never cells.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dpcate.errors import DataError

Columns = Mapping[str, np.ndarray]

UNDECLARED, UNUSABLE = "not declared", "dates or nested values"  # beside number, text, true or false

_LONGEST_LINE = 1 << 26
_FIRST_DATA_LINE = 2  # as the reader counts lines, with the header as line 1
_EVERY_BYTE = "latin-1"  # no byte stops the reader; each cell is decoded on its own later

_TEXT_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_OTHER_TYPES = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
_ARRAY_KINDS = "fiubUTO"


def read_columns(source: Any, names: Sequence[str]) -> Columns:
    """The named columns of a table, in file order; other columns are ignored, missing ones refused."""
    if isinstance(source, str | Path):
        return _from_path(Path(source), names)
    if isinstance(source, Mapping):
        return _from_mapping(source, names)
    try:
        frame = nw.from_native(source, eager_only=True)
    except TypeError:
        problem = "a table must be a pandas, polars or Arrow table, or the path of a .csv or .parquet file"
    except nw.exceptions.DuplicateError:
        problem = "the table has more than one column of the same name; rename or drop the repeated ones"
    else:
        _require_columns(frame.columns, names)
        return {name: _cells_of_series(frame[name], name) for name in names}
    raise DataError(problem)


def header(path: str | Path) -> list[str]:
    """The column names of a CSV or Parquet file."""
    path = _existing(Path(path))
    return _csv_header(path)[0] if _kind(path) == "csv" else _parquet(path)[1]


def column_types(path: str | Path, names: Sequence[str] | None = None) -> dict[str, str]:
    """The type that the file itself declares for each column, in words: a CSV declares none, and no cell is read."""
    path = _existing(Path(path))
    if _kind(path) == "csv":
        found = _csv_header(path)[0]
        types = dict.fromkeys(found, UNDECLARED)
    else:
        file, found = _parquet(path)
        types = {field.name: _type_in_words(field.type) for field in file.schema_arrow}
    names = found if names is None else names
    _require_columns(found, names)
    return {name: types[name] for name in names}


def as_columns(matrix: Any, names: Sequence[str]) -> Columns:
    """A table by column name, or a two-dimensional array whose columns stand in the order of `names`."""
    if isinstance(matrix, str | Path | Mapping) or nw.dependencies.is_into_dataframe(matrix):
        return read_columns(matrix, names)
    array = _array(matrix)
    if array.ndim == 1 and len(names) == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DataError(f"expected a table with {len(names)} columns in the schema's order: {', '.join(names)}")
    return {name: array[:, position] for position, name in enumerate(names)}


def as_column(values: Any, name: str) -> np.ndarray:
    """One column from a series or a one-dimensional array."""
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    if nw.dependencies.is_into_series(values):
        return _cells_of_series(nw.from_native(values, series_only=True), name)
    array = _array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} must be one column")
    return array


def _array(values: Any) -> np.ndarray:
    """An array whose cells are as they were given: no cell decides the type of the others."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), None, values.data)
    try:
        array = np.asarray(values)
    except ValueError:
        array = None
    if array is None:
        raise DataError("expected a rectangular array: every row needs the same number of columns")
    if isinstance(values, list | tuple):
        return np.array(values, dtype=object)
    if array.dtype.kind not in _ARRAY_KINDS:
        raise DataError("an array must hold numbers or text, not dates or records")
    return array


def _from_mapping(source: Mapping[str, Any], names: Sequence[str]) -> Columns:
    _require_columns(list(source), names)
    columns = {name: as_column(source[name], name) for name in names}
    if len({len(column) for column in columns.values()}) > 1:
        raise DataError("the columns of a table must have the same length")
    return columns


def _from_path(path: Path, names: Sequence[str]) -> Columns:
    path = _existing(path)
    if _kind(path) == "csv":
        table = _read_csv(path, names)
        return {name: _cells_of_csv(table.column(name)) for name in names}
    table = _read_parquet(path, names)
    return {name: _cells_of_arrow(table.column(name), name) for name in names}


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".parquet" in suffixes[-1:] or ".pq" in suffixes[-1:]:
        return "parquet"
    if ".csv" in suffixes[-1:] or suffixes[-2:] == [".csv", ".gz"]:
        return "csv"
    raise DataError(f"the file {path.name!r} must end in .csv, .csv.gz or .parquet")


def _existing(path: Path) -> Path:
    _kind(path)
    try:
        if path.is_file() and path.stat().st_size > 0:
            return path
        problem = "is empty" if path.is_file() else "does not exist or is not a file"
    except (OSError, ValueError):
        problem = "cannot be opened"
    raise DataError(f"the file {path.name!r} {problem}")


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Column names and separator, from the first line alone."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            first = stream.read(1 << 20).split(b"\n", 1)[0]
        line = first.decode("utf-8-sig").strip("\r\n")
        headers = {mark: next(csv.reader([line], delimiter=mark)) for mark in ",;\t"}
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error):
        line = ""
    if not line or "\0" in line:
        raise DataError(f"the file {path.name!r} has no readable header line; the first line must hold column names")
    separator = max(headers, key=lambda mark: len(headers[mark]))
    return [name.strip() for name in headers[separator]], separator


def _read_csv(path: Path, names: Sequence[str]) -> pa.Table:
    found, separator = _csv_header(path)
    _require_columns(found, names)
    malformed: list[int] = []

    def note(row: Any) -> str:
        malformed.append(row.number)
        return "skip"

    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            table = pa.csv.read_csv(
                stream,
                read_options=pa.csv.ReadOptions(
                    column_names=found,
                    skip_rows=1,
                    use_threads=False,
                    block_size=_LONGEST_LINE,
                    encoding=_EVERY_BYTE,
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=separator,
                    invalid_row_handler=note,
                    ignore_empty_lines=False,
                    newlines_in_values=True,
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(names),
                    column_types={name: pa.string() for name in names},
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
    except (OSError, pa.ArrowException):
        table = None
    if table is not None:
        return _with_blank_rows(table, malformed)
    if _only_header(path):
        return pa.table({name: pa.array([], pa.string()) for name in names})
    raise DataError(f"the file {path.name!r} cannot be read as CSV")


def _with_blank_rows(table: pa.Table, malformed: Sequence[int]) -> pa.Table:
    """Put a row without values where a malformed line stood, so that no other row changes its place."""
    if not malformed:
        return table
    blank = np.zeros(len(table) + len(malformed), dtype=bool)
    blank[np.asarray(malformed) - _FIRST_DATA_LINE] = True
    return table.take(pa.array(np.cumsum(~blank) - 1, mask=blank))


def _only_header(path: Path) -> bool:
    with pa.input_stream(str(path), compression="detect") as stream:
        return not stream.read(1 << 20).partition(b"\n")[2].strip()


def _parquet(path: Path) -> tuple[pa.parquet.ParquetFile, list[str]]:
    """The opened file and its column names."""
    try:
        file = pa.parquet.ParquetFile(path)
        return file, list(file.schema_arrow.names)
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        pass
    raise DataError(f"the file {path.name!r} cannot be read as Parquet")


def _type_in_words(declared: pa.DataType) -> str:
    if pa.types.is_dictionary(declared):
        declared = declared.value_type
    if any(is_text(declared) for is_text in _TEXT_TYPES):
        return "text"
    if pa.types.is_boolean(declared):
        return "true or false"
    numeric = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    if any(is_number(declared) for is_number in numeric):
        return "number"
    return UNDECLARED if pa.types.is_null(declared) else UNUSABLE


def _read_parquet(path: Path, names: Sequence[str]) -> pa.Table:
    file, found = _parquet(path)
    _require_columns(found, names)
    try:
        return file.read(columns=list(names))
    except (OSError, pa.ArrowException):
        pass
    raise DataError(f"the file {path.name!r} cannot be read as Parquet")


def _cells_of_series(series: "nw.Series[Any]", name: str) -> np.ndarray:
    if series.implementation.is_pyarrow():
        return _cells_of_arrow(series.to_native(), name)
    if series.dtype.is_nested() or series.dtype.is_temporal():
        raise DataError(f"the column {name!r} holds dates or nested values; give numbers or text")
    whole = series.dtype.is_integer() or series.dtype == nw.Boolean
    if series.dtype.is_float() or (whole and not series.null_count()):
        return series.to_numpy()
    return _objects(series.to_list())


def _cells_of_arrow(column: pa.ChunkedArray, name: str) -> np.ndarray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if any(is_text(column.type) for is_text in _TEXT_TYPES):
        return _objects([_decoded(cell) for cell in column.cast(pa.large_binary()).to_pylist()])
    if pa.types.is_floating(column.type):
        return column.cast(pa.float64()).to_numpy()
    if not any(is_scalar(column.type) for is_scalar in _OTHER_TYPES):
        raise DataError(f"the column {name!r} holds dates or nested values; give numbers or text")
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()
    return _objects(column.to_pylist())


def _objects(cells: Sequence[Any]) -> np.ndarray:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _cells_of_csv(column: pa.ChunkedArray) -> np.ndarray:
    cells = column.to_pylist()
    return _objects([None if cell is None else _decoded(cell.encode(_EVERY_BYTE)) for cell in cells])


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _require_columns(found: Sequence[str], wanted: Sequence[str]) -> None:
    counts = Counter(found)
    missing = [name for name in wanted if not counts[name]]
    if missing:
        raise DataError(f"the table lacks the columns {', '.join(missing)}; rename them or correct the schema")
    repeated = sorted({name for name in wanted if counts[name] > 1})
    if repeated:
        raise DataError(f"the table has more than one column named {', '.join(repeated)}; rename or drop them")
