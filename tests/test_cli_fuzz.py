"""Thousands of malformed files and arguments: the command line ends with 0, 2 or 3, without a traceback.

Every case runs `dpcate.cli.main` in this process, as the entry point does; a sample of them runs as real processes too.
Cases are drawn from fixed seeds, so they are the same every time.
"""

import contextlib
import io
import json
import random
import subprocess
import sys
import tomllib
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w

import dpcate
from dpcate import cli

KINDS = ("csv", "parquet", "toml", "json", "arguments")
CHUNKS, CASES = 5, 90  # of each kind: 5 × 5 × 90 = 2,250 cases
DATA = dpcate.datasets.synthetic(1, 40, seed=0)
FRAME = pd.DataFrame({"x0": DATA.X[:, 0], "x1": DATA.X[:, 1], "treated": DATA.T.astype(int), "outcome": DATA.Y})
SCHEMA = DATA.schema.to_toml()
RELEASE = dpcate.PrivateCATE(DATA.schema, epsilon=1.0, delta=1e-6).fit(DATA.Y, DATA.T, X=DATA.X).release_.to_json()
NASTY = [
    None, True, 0, -1, 1e308, -1e308, 5e-324, 2**63, 10**30, "", " ", "nan", "inf", "FILL IN", "\x00", "\n", "a" * 3000,
    "💥", "../../x", [], {}, [[]], {"a": {"a": {}}}, "x0", "<b>", 0.1, "1e-6", "number", "category", [1, "1", True],
]  # fmt: skip
STRANGE = [
    b"", b"\x00", b"\xff\xfe", b'"', b"\n", b",,,", b";", b"nan", b"9" * 400, b"\xef\xbb\xbf", b"[" * 300,
    b"'''", b"\r",
]  # fmt: skip
WORDS = [
    "", "-", "--", "-x", "--epsilon", "--out", "--help", "nan", "inf", "-inf", "1e400", "0", "-1", "1", "0.5",
    "x" * 4000, "é💥", "\x00", "\n", "../nowhere/x", ".", "rows.csv", "rows.parquet", "schema.toml", "release.json",
    "--alpha=2", "--quiet", "--random-state", "999999999999999999999999", "features", "kernel", "moments", "dr", "none",
    "[]", "%s{}", "--version", "schema", "effect", "--certificate", "--profiles", "--queries", "add-or-remove-one",
    "/dev/null", "x" * 230, "ledger", "--dataset", "--json", "--extend", "sqlite:///x", "postgresql:///",
]  # fmt: skip
FIT = ["fit", "--schema", "schema.toml", "--data", "rows.csv", "--epsilon", "1", "--delta", "1e-6", "--out", "new.json"]
PLAN = ["plan", "--schema", "schema.toml", "--rows", "100", "--epsilon", "1", "--compare", "none", "--json"]
CALLS = [
    FIT,
    [*FIT, "--learner", "dr", "--split", "disjoint", "--neighbours", "add-or-remove-one", "--quiet"],
    [*FIT, "--queries", "points.csv", "--second-stage", "moments", "--nuisance", "moments"],
    [*FIT, "--known-propensity", "0.5", "--propensity-floor", "0.1", "--random-state", "3"],
    ["effect", "release.json", "--at", "points.csv", "--out", "effects.csv", "--alpha", "0.2"],
    ["report", "release.json", "--out", "r.html", "--certificate", "c.html", "--profiles", "points.csv"],
    ["schema", "init", "rows.csv", "--out", "template.toml"],
    ["schema", "check", "schema.toml", "--data", "rows.parquet"],
    [*FIT, "--ledger", "ledger.db", "--dataset", "patients"],
    ["ledger", "grant", "--dataset", "patients", "--epsilon", "1", "--delta", "1e-6"],
    ["ledger", "show", "--dataset", "patients", "--json"],
    ["ledger", "history", "--dataset", "patients"],
    ["demo", "--out", "made", "--rows", "20", "--epsilon", "1", "--quiet"],
    ["effect", "release.json", "--at", "points.csv", "--json"],
    ["report", "release.json", "--out", "r.html", "--json", "--quiet"],
    PLAN,
]


def damaged(content, draw):
    """A few cuts, repetitions, swaps and strange bytes."""
    content = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(content) + 1)
        end = min(len(content), start + draw.randint(0, 12))
        content[start:end] = draw.choice([*STRANGE, draw.randbytes(4), bytes(content[start:end]) * 3])
        if draw.random() < 0.1:
            del content[start:]
    return bytes(content)


def extreme(value, draw):
    """A value of the same type that reaches further into the program."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    if isinstance(value, str):
        return draw.choice(["\u202e", "<b>&", "a" * 3000, "$\\frac{", "none", "moments", "add-or-remove-one", " "])
    if isinstance(value, int):
        return draw.choice([0, 1, -1, 10**9, 2**62])
    return draw.choice([0.0, -0.0, 1e-320, 1e-15, 1e15, 1e155, 1e307, -1e307, 1e308, value * 1e9, value + 1e-12])


def twisted(document, draw, tame=False):
    """A document with some value, deep or shallow, replaced, removed or added; if tame, by one of the same type."""
    document = json.loads(json.dumps(document))
    for _ in range(draw.randint(1, 3)):
        inner = document
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = draw.choice(keys)
            if isinstance(inner[key], dict | list) and draw.random() < 0.75:
                inner = inner[key]
                continue
            choice = 0.5 if tame else draw.random()
            if choice < 0.15:
                del inner[key]
            elif choice < 0.3 and isinstance(inner, dict):
                inner[draw.choice(["extra", "kind", "", key * 2])] = draw.choice(NASTY)
            elif choice < 0.7:
                inner[key] = extreme(inner[key], draw)
            else:
                inner[key] = draw.choice(NASTY)
            break
    return document


def csv_case(draw):
    content = damaged(FRAME.head(draw.choice([0, 3, 40])).to_csv(index=False).encode(), draw)
    calls = [FIT, FIT, CALLS[6], ["schema", "check", "schema.toml", "--data", "rows.csv"]]
    if draw.random() < 0.5:
        return {"rows.csv": content}, draw.choice(calls)
    calls = [CALLS[4], CALLS[4], CALLS[5], [*FIT, "--queries", "points.csv"]]
    return {"points.csv": damaged(b"name,x0,x1\nfirst,0.2,0.5\nsecond,0.9,0.1\n", draw)}, draw.choice(calls)


def parquet_case(draw):
    columns = dict(FRAME)
    for _ in range(draw.randint(0, 2)):
        odd = [
            pa.array([[1.0]] * 40), pa.array([{"a": 1}] * 40), pa.array([0] * 40, pa.timestamp("us")), pa.nulls(40),
            pa.array(["7"] * 40), pa.array([b"\xff"] * 40), pa.array([True] * 40), pa.array([float("nan")] * 40),
            pa.array(["a"] * 40).dictionary_encode(), pa.array([1] * 40, pa.decimal128(5, 2)),
            pa.array([1.5] * 40, pa.float16()),
        ]  # fmt: skip
        columns[draw.choice([*FRAME.columns, "new", "", "a\nb"])] = draw.choice(odd)
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns).slice(0, draw.choice([40, 40, 0])), buffer)
    content = damaged(buffer.getvalue(), draw) if draw.random() < 0.6 else buffer.getvalue()
    calls = [["fit", *FIT[1:4], "rows.parquet", *FIT[5:]], ["schema", "init", "rows.parquet"], CALLS[7]]
    return {"rows.parquet": content}, draw.choice(calls)


def toml_case(draw):
    if draw.random() < 0.4:
        content = damaged(SCHEMA.encode(), draw)
    else:
        plain = twisted(tomllib.loads(SCHEMA), draw)
        try:
            content = tomli_w.dumps(plain).encode()
        except (TypeError, ValueError):  # what TOML has no word for
            content = json.dumps(plain).encode()
    quick = [FIT, ["schema", "check", "schema.toml"], CALLS[7]]
    return {"schema.toml": content}, draw.choice([*quick * 3, PLAN])


def json_case(draw):
    if draw.random() < 0.3:
        content = damaged(RELEASE, draw)
    else:
        content = json.dumps(twisted(json.loads(RELEASE), draw, tame=draw.random() < 0.5)).encode()
    return {"release.json": content}, draw.choice([CALLS[4], CALLS[4], CALLS[5]])


def arguments_case(draw):
    call = list(draw.choice(CALLS))
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(call))
        change = draw.random()
        if change < 0.5:
            call[place] = draw.choice(WORDS)
        elif change < 0.7:
            call.insert(place, draw.choice(WORDS))
        elif change < 0.85:
            call[place : place + 1] = []
        else:
            other = draw.randrange(len(call))
            call[place], call[other] = call[other], call[place]
        call = call or [""]
    return {}, call


def cases(kind, chunk, count=CASES):
    draw = random.Random(f"{kind} {chunk}")
    make = {"csv": csv_case, "parquet": parquet_case, "toml": toml_case, "json": json_case, "arguments": arguments_case}
    for _ in range(count):
        yield make[kind](draw)


def lay_out(folder, files):
    """A curator's folder in which one thing is wrong."""
    (folder / "template.toml").unlink(missing_ok=True)
    FRAME.to_csv(folder / "rows.csv", index=False)
    FRAME.to_parquet(folder / "rows.parquet")
    (folder / "points.csv").write_text("name,x0,x1\nfirst,0.2,0.5\nsecond,0.9,0.1\n")
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "release.json").write_bytes(RELEASE)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def called(arguments, monkeypatch):
    """The exit code of the entry point and what it printed."""
    monkeypatch.setattr(sys, "argv", ["dpcate", *arguments])
    printed, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            cli.main()
        except SystemExit as end:
            return end.code, printed.getvalue(), complained.getvalue()
    raise AssertionError("the entry point did not exit")


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_malformed_escapes(kind, chunk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, (files, arguments) in enumerate(cases(kind, chunk)):
        lay_out(tmp_path, files)
        code, _, complained = called(arguments, monkeypatch)
        told = f"{kind} {chunk}.{number}: {arguments}\n{files}\n{complained}"
        assert code in (0, 2, 3), told
        assert "Traceback" not in complained, told
        if code and complained:
            assert complained.startswith('{"error": ' if "--json" in arguments else "error: "), told
            assert complained.count("\n") == 1, told


@pytest.mark.parametrize("kind", KINDS)
def test_real_processes_end_the_same_way(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for files, arguments in cases(kind, 0, count=4):
        if any("\x00" in argument for argument in arguments):
            continue
        lay_out(tmp_path, files)
        command = [sys.executable, "-m", "dpcate", *arguments]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert result.returncode in (0, 2, 3), result.stderr
        assert "Traceback" not in result.stderr
        lay_out(tmp_path, files)
        assert result.returncode == called(arguments, monkeypatch)[0]


def test_there_are_enough_cases():
    assert len(KINDS) * CHUNKS * CASES >= 2000
