"""One little table, however it comes; and no row that could stop a table from being read."""

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcate import Category, Number, Outcome, Schema, Treatment, tables
from dpcate.data import read_rows
from dpcate.errors import DataError
from dpcate.tables import as_column, as_columns, header, read_columns

SCHEMA = Schema(
    covariates={"age, years": Number(20, 100), "sex": Category(["f", "m"])},
    treatment="treated",
    outcome=Outcome("y", 0, 10),
)
NAMES = SCHEMA.columns
AGE, SEX, TREATED, Y = (
    [30, 60, None, 90, 60],
    ["f", "m", "f", None, "m"],
    [0, 1, 1, 0, None],
    [1.5, 20, 2, 3, 4],
)
CELLS = dict(zip(NAMES, (AGE, SEX, TREATED, Y), strict=True))
X = [[0.125, 1, 0], [0.5, 0, 1], [0, 0, 0], [0, 0, 0], [0.5, 0, 1]]
PRESENT = [True, True, False, False, False]

NOTE = "said 'o;k',\r\n\n twice"
SECRET = "s3cr3t-cell"


def text(separator=",", newline="\n", note=NOTE):
    lines = [['"age, years"', "sex", '"a;note\t"', "treated", "y"]]
    for age, sex, treated, y in zip(AGE, SEX, TREATED, Y, strict=True):
        cells = ["" if cell is None else str(cell) for cell in (age, sex, treated, y)]
        lines.append([*cells[:2], f'"{note}"', *cells[2:]])
    return "".join(separator.join(line) + newline for line in lines)


def pandas_numpy():
    return pd.DataFrame({**CELLS, "sex": pd.Series(SEX, dtype=object)})


def pandas_nullable():
    types = ("Int64", "string", "boolean", "Float64")
    return pd.DataFrame({name: pd.array(CELLS[name], dtype=kind) for name, kind in zip(NAMES, types, strict=True)})


def pandas_mixed():
    mixed = [
        ["30", 60.0, pd.NA, 90, Decimal(60)],
        SEX,
        [False, "1", True, 0.0, pd.NaT],
        ["1.5", 20, "2", 3.0, 4],
    ]
    return pd.DataFrame(dict(zip(NAMES, (pd.Series(column, dtype=object) for column in mixed), strict=True)))


def pandas_categorical():
    return pd.DataFrame({name: pd.Categorical(column) for name, column in CELLS.items()})


def arrow_exotic():
    return pa.table(
        {
            NAMES[0]: pa.array([None if a is None else Decimal(a) for a in AGE], pa.decimal128(9, 3)),
            NAMES[1]: pa.chunked_array([pa.array(SEX[:2]).dictionary_encode(), pa.array(SEX[2:]).dictionary_encode()]),
            NAMES[2]: pa.array([False, True, True, False, None]),
            NAMES[3]: pa.array(Y, pa.float32()),
        }
    )


FRAMES = {
    "dict": lambda: CELLS,
    "dict of arrays": lambda: {name: np.array(column, dtype=object) for name, column in CELLS.items()},
    "dict of series": lambda: {name: pl.Series(column, strict=False) for name, column in CELLS.items()},
    "dict of Arrow": lambda: {name: pa.array(column) for name, column in CELLS.items()},
    "pandas": pandas_numpy,
    "pandas nullable": pandas_nullable,
    "pandas mixed": pandas_mixed,
    "pandas categorical": pandas_categorical,
    "pandas arrow": lambda: pandas_nullable().convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(CELLS, strict=False),
    "polars categorical": lambda: pl.DataFrame(CELLS, strict=False).cast({"sex": pl.Categorical}),
    "arrow": lambda: pa.table(CELLS),
    "arrow exotic": arrow_exotic,
    "arrow large": lambda: pa.table({**CELLS, "sex": pa.array(SEX, pa.large_string())}),
    "arrow view": lambda: pa.table({**CELLS, "sex": pa.array(SEX, pa.string_view())}),
    "arrow binary": lambda: pa.table({**CELLS, "sex": pa.array(SEX, pa.large_string()).cast(pa.large_binary())}),
}

FILES = {
    "comma.csv": text().encode(),
    "semicolon.csv": text(";").encode(),
    "tab.CSV": text("\t").encode(),
    "crlf.csv": text(newline="\r\n").encode(),
    "bom.csv": b"\xef\xbb\xbf" + text().encode(),
    "open end.csv": text().rstrip("\n").encode(),
    "bytes elsewhere.csv": text(note="?").encode().replace(b"?", b"\xff\x00"),
    "zipped.csv.gz": gzip.compress(text(";").encode()),
}


def assert_same(table):
    rows = read_rows(SCHEMA, table=table)
    assert rows.present.tolist() == PRESENT
    assert rows.x.tolist() == X
    assert rows.treated[:4].tolist() == [0, 1, 1, 0]
    assert rows.outcome.tolist() == [1.5, 10, 2, 3, 4]


def refusal(read):
    """The text of the refusal: one line, with nothing from a cell in it or in any error behind it."""
    with pytest.raises(DataError) as caught:
        read()
    error = caught.value
    assert len(str(error).splitlines()) == 1
    while error is not None:
        assert SECRET not in str(error) + repr(error)
        error = error.__cause__ or error.__context__
    return str(caught.value)


def columns_of(tmp_path, content, names=("a", "b")):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    columns = read_columns(path, names)
    return list(zip(*[columns[name].tolist() for name in names], strict=True))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_frame_gives_the_same_rows(make):
    assert_same(make())


@pytest.mark.parametrize("name", FILES)
def test_every_csv_gives_the_same_rows(name, tmp_path):
    (tmp_path / name).write_bytes(FILES[name])
    assert_same(tmp_path / name)
    assert_same(str(tmp_path / name))
    assert header(tmp_path / name) == [NAMES[0], "sex", "a;note", "treated", "y"]


@pytest.mark.parametrize("frame", ["arrow", "arrow exotic", "arrow large", "arrow binary"])
@pytest.mark.parametrize("name", ["table.parquet", "table.PQ"])
def test_every_parquet_gives_the_same_rows(frame, name, tmp_path):
    pq.write_table(FRAMES[frame]().append_column("more.or.less", pa.array([[1]] * 5)), tmp_path / name)
    assert_same(tmp_path / name)
    assert header(tmp_path / name) == [*NAMES, "more.or.less"]


def test_parquet_column_with_a_dot_in_its_name(tmp_path):
    pq.write_table(pa.table({"a.b": [1, 2]}), tmp_path / "table.parquet")
    assert read_columns(tmp_path / "table.parquet", ["a.b"])["a.b"].tolist() == [1, 2]


def test_columns_beside_each_other_give_the_same_rows():
    matrix = np.array([AGE, SEX], dtype=object).T
    for x in (matrix, matrix.tolist(), pl.DataFrame({name: CELLS[name] for name in NAMES[:2]})):
        rows = read_rows(SCHEMA, Y=np.array(Y)[:, None], T=pd.Series(TREATED, dtype="Int8"), X=x)
        assert rows.x.tolist() == X
        assert rows.present.tolist() == PRESENT


def test_a_frame_is_read_by_name_not_by_order():
    frame = pd.DataFrame({"b": [1], "other": [5], "a": [2]})
    assert as_columns(frame, ["a", "b"]) == {"a": [2], "b": [1]}


# No cell decides how other cells are read.


@pytest.mark.parametrize("other", [None, "x", 0.5, 10**30, True, SECRET], ids=repr)
@pytest.mark.parametrize("levels", [(False, True), (0, 1)])
def test_a_cell_leaves_the_others_in_its_column_alone(other, levels):
    schema = Schema(covariates={"a": Number(0, 1)}, treatment=Treatment("t", *levels), outcome=Outcome("y", 0, 1))
    for column in ([False, True, other], np.array([False, True, other], dtype=object)):
        for frame in ({"t": column}, pd.DataFrame({"t": column})):
            rows = read_rows(schema, Y=[0, 0, 0], T=frame["t"], X=[0, 0, 0])
            assert rows.treated[:2].tolist() == [0, 1]
            assert rows.present[:2].all()


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, lambda cells: pd.DataFrame(cells, dtype="Int64")])
@pytest.mark.parametrize("other", [None, 3])
def test_long_whole_numbers_stay_apart_beside_a_missing_one(make, other):
    cells = read_columns(make({"id": [2**60, 2**60 + 1, other]}), ["id"])["id"]
    assert cells[:2].tolist() == [2**60, 2**60 + 1]


def test_long_whole_numbers_stay_apart_in_parquet(tmp_path):
    pq.write_table(pa.table({"id": [2**60, 2**60 + 1, None]}), tmp_path / "table.parquet")
    assert read_columns(tmp_path / "table.parquet", ["id"])["id"].tolist() == [2**60, 2**60 + 1, None]


def test_cells_that_are_arrays_stay_cells():
    frame = pd.DataFrame({"a": pd.Series([np.zeros((2, 2)), np.zeros((2, 3)), [1, 2]], dtype=object)})
    assert read_columns(frame, ["a"])["a"].shape == (3,)


def test_a_masked_cell_is_missing():
    assert as_column(np.ma.array([1, 2], mask=[False, True]), "T").tolist() == [1, None]


def test_text_that_is_not_utf8_is_a_missing_cell(tmp_path):
    raw = pa.array([b"f", b"\xff", b"m"])
    column = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"sex": column}), tmp_path / "table.parquet")
    for table in (pa.table({"sex": column}), tmp_path / "table.parquet"):
        assert read_columns(table, ["sex"])["sex"].tolist() == ["f", None, "m"]


# A malformed line of a CSV is a row without values, at its place.

GOOD = [("1", "2"), ("3", "4"), ("5", "6")]
NOTHING = (None, None)
MALFORMED = {
    "too few bad bytes": b"\xff",
    "too few": b"9",
    "too many": b"9,9,9",
    "blank": b"",
    "bad bytes": b"\xff,\xfe",
    "quoted": b'"9\n\n9"',
}


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    "places", [(0,), (1,), (3,), (0, 0), (1, 1, 1), (3, 3), (0, 1, 2, 3), (0, 0, 2, 3, 3)], ids=str
)
@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_malformed_lines_become_empty_rows_at_their_place(tmp_path, line, places, newline):
    lines, rows = [",".join(row).encode() for row in GOOD], list(GOOD)
    for place in reversed(places):
        lines.insert(place, line)
        rows.insert(place, NOTHING)
    assert columns_of(tmp_path, newline.join([b"a,b", *lines, b""])) == rows


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("count", [1, 3])
def test_a_csv_of_malformed_lines_only(tmp_path, line, count, capfd):
    assert columns_of(tmp_path, b"a,b\n" + (line + b"\n") * count) == [NOTHING] * count
    assert capfd.readouterr() == ("", "")


def test_malformed_lines_after_quoted_newlines(tmp_path):
    content = 'a,b\n"1\n\n1",2\n9\n3,"4\n"\n9,9,9\n5,6\n'
    assert columns_of(tmp_path, content) == [("1\n\n1", "2"), NOTHING, ("3", "4\n"), NOTHING, ("5", "6")]


def test_malformed_lines_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_LONGEST_LINE", 16)
    content = "a,b\n" + '9\n1,2\n9,9,9\n\n3,"\n4"\n' * 40
    assert columns_of(tmp_path, content) == [NOTHING, ("1", "2"), NOTHING, NOTHING, ("3", "\n4")] * 40


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n", "\ufeffa,b\n"])
def test_a_csv_with_a_header_only_has_no_rows(tmp_path, content):
    assert columns_of(tmp_path, content) == []


def test_a_header_only_table_gives_no_rows(tmp_path):
    (tmp_path / "table.csv").write_text(text().splitlines()[0])
    rows = read_rows(SCHEMA, table=tmp_path / "table.csv")
    assert rows.x.shape == (0, 3)
    assert rows.persons == 0


@pytest.mark.parametrize("first", ["a,b,,", "a,b,z,z", '"a","b","x;y;z","\t\t\t"', " a , b ,c,d"])
def test_other_columns_are_ignored_whatever_their_names(tmp_path, first):
    assert columns_of(tmp_path, f"{first}\n1,2,{SECRET},\n") == [("1", "2")]


# What cannot be read is refused in one line that shows no cell.


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.parquet", "table.pq"])
def test_missing_and_empty_files_and_directories_are_refused(tmp_path, name):
    path = tmp_path / name
    assert "does not exist" in refusal(lambda: read_columns(path, ["a"]))
    path.touch()
    assert "is empty" in refusal(lambda: read_columns(path, ["a"]))
    path.unlink()
    path.mkdir()
    assert "not a file" in refusal(lambda: read_columns(path, ["a"]))
    assert "not a file" in refusal(lambda: header(path))


@pytest.mark.parametrize("name", ["table.txt", "table", "table.gz", "table.csv.zip", ".csv"])
def test_wrong_suffix_is_refused(tmp_path, name):
    (tmp_path / name).write_text(f"a\n{SECRET}\n")
    assert "must end in .csv" in refusal(lambda: read_columns(tmp_path / name, ["a"]))


def test_impossible_path_is_refused():
    refusal(lambda: read_columns("a\0.csv", ["a"]))
    refusal(lambda: read_columns("a" * 5000 + ".csv", ["a"]))


@pytest.mark.parametrize(
    "content",
    [
        b"\n" + SECRET.encode(),
        b"\xff\xfe," + SECRET.encode(),
        b"\0\0",
        f"a,b\r{SECRET},2\r".encode(),
        b"a" * 2**18,
    ],
    ids=["blank", "not UTF-8", "nul", "carriage returns", "too long"],
)
def test_csv_without_a_header_is_refused(tmp_path, content):
    message = refusal(lambda: columns_of(tmp_path, content))
    assert "header line" in message


def test_a_csv_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_LONGEST_LINE", 16)
    assert "cannot be read as CSV" in refusal(lambda: columns_of(tmp_path, f"a,b\n1,2\n{SECRET * 9},2\n"))


def test_corrupt_gzip_is_refused(tmp_path):
    whole = gzip.compress(f"a,b\n{SECRET},2\n".encode())
    for damaged in (b"no gzip at all", whole[:-12], whole[:15] + b"\0" * 9 + whole[24:]):
        (tmp_path / "table.csv.gz").write_bytes(damaged)
        refusal(lambda: read_columns(tmp_path / "table.csv.gz", ["a", "b"]))


def test_corrupt_parquet_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": [SECRET] * 100}), path)
    whole = path.read_bytes()
    blind = b"\xff" * 200
    for damaged in (
        whole[: len(whole) // 2],
        whole[-50:],
        bytes(range(256)),
        blind,
        whole[:4] + blind + whole[204:],
    ):
        path.write_bytes(damaged)
        assert "cannot be read as Parquet" in refusal(lambda: read_columns(path, ["a"]))


def with_path(path, frame):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else pq.write_table(pa.table(dict(frame)), path)
    return path


def test_missing_columns_are_refused(tmp_path):
    frame = pd.DataFrame({"a": [SECRET], SECRET: [1]})
    sources = [frame, pl.from_pandas(frame), pa.table({"a": [SECRET]}), {"a": [SECRET]}]
    sources += [with_path(tmp_path / name, frame) for name in ("table.csv", "table.parquet")]
    for source in sources:
        assert "lacks the columns b, c; rename" in refusal(lambda source=source: read_columns(source, ["a", "b", "c"]))


def test_duplicated_columns_are_refused(tmp_path):
    twice = pa.table([[SECRET], [SECRET], [1]], names=["a", "a", "b"])
    pq.write_table(twice, tmp_path / "table.parquet")
    (tmp_path / "table.csv").write_text(f"a,a,b\n{SECRET},{SECRET},1\n")
    frame = pd.DataFrame([[SECRET, SECRET, 1]], columns=["a", "a", "b"])
    for source in (twice, frame, tmp_path / "table.parquet", tmp_path / "table.csv"):
        message = refusal(lambda source=source: read_columns(source, ["a", "b"]))
        assert "more than one column" in message
        assert "rename or drop" in message


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[SECRET]]),
        pa.array([{"k": SECRET}]),
        pa.array([[("k", SECRET)]], pa.map_(pa.string(), pa.string())),
        pa.array([0], pa.date32()),
        pa.array([0], pa.timestamp("us")),
        pa.array([0], pa.time64("us")),
        pa.array([0], pa.duration("us")),
    ],
    ids=lambda column: str(column.type),
)
def test_nested_and_date_columns_are_refused(column, tmp_path):
    table = pa.table({"a": column})
    pq.write_table(table, tmp_path / "table.parquet")
    sources = [table, tmp_path / "table.parquet", {"a": column}]
    sources += [] if pa.types.is_map(column.type) else [pl.from_arrow(table)]
    for source in sources:
        assert "'a' holds dates or nested values" in refusal(lambda source=source: read_columns(source, ["a"]))


def test_date_columns_of_pandas_and_numpy_are_refused():
    dates = np.array(["2020-02-02"], dtype="M8[s]")
    for source in (pd.DataFrame({"a": dates}), {"a": dates}, {"a": pd.Series(dates)}):
        assert "dates" in refusal(lambda source=source: read_columns(source, ["a"]))
    assert "dates" in refusal(lambda: as_columns(dates[:, None], ["a"]))


def test_ragged_arrays_are_refused():
    for ragged in ([[SECRET], [SECRET, SECRET]], [SECRET, [SECRET]]):
        assert "rectangular" in refusal(lambda ragged=ragged: as_columns(ragged, ["a"]))
        assert "rectangular" in refusal(lambda ragged=ragged: read_columns({"a": ragged}, ["a"]))
    assert "same length" in refusal(lambda: read_columns({"a": [SECRET], "b": [1, 2]}, ["a", "b"]))


def test_arrays_of_the_wrong_shape_are_refused():
    assert "2 columns in the schema's order: a, b" in refusal(lambda: as_columns([[SECRET] * 3], ["a", "b"]))
    assert "2 columns" in refusal(lambda: as_columns([SECRET], ["a", "b"]))
    assert "one column" in refusal(lambda: as_column([[SECRET, SECRET]], "T"))
    assert "one column" in refusal(lambda: as_column(SECRET, "T"))


@pytest.mark.parametrize(
    "source", [None, 3, [SECRET], np.array([SECRET]), pd.Series([SECRET]), pl.LazyFrame({"a": [1]})]
)
def test_what_is_no_table_is_refused(source):
    assert "a table must be" in refusal(lambda: read_columns(source, ["a"]))
