"""Every command as a user runs it: a process, its exit code, its one-line errors, its files."""

import csv
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpcate

DATA = dpcate.datasets.synthetic(1, 300, seed=0)


def run(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "dpcate", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a schema, rows and points."""
    folder = tmp_path_factory.mktemp("curator")
    DATA.schema.save(folder / "schema.toml")
    frame = pd.DataFrame({"x0": DATA.X[:, 0], "x1": DATA.X[:, 1], "treated": DATA.T.astype(int), "outcome": DATA.Y})
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    (folder / "points.csv").write_text("name,x0,x1\nfirst,0.2,0.5\nsecond,0.9,\n")
    return folder


def fit(place, *more, schema="schema.toml", data="rows.csv", epsilon="1", delta="1e-6", out="release.json"):
    options = ["--schema", schema, "--data", data, "--epsilon", epsilon, "--delta", delta, "--out", out]
    return run("fit", *options, *more, folder=place)


def assert_refused(result, message, code=2):
    assert result.returncode == code, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_fit_then_effect_then_report(place):
    result = fit(place)
    assert result.returncode == 0, result.stderr
    assert "(1, 1e-06)-DP per person" in result.stdout
    release = dpcate.Release.load(place / "release.json")
    assert release.private

    result = run("effect", "release.json", "--at", "points.csv", "--out", "effects.csv", folder=place)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    rows = list(csv.DictReader((place / "effects.csv").read_text().splitlines()))
    assert list(rows[0]) == ["name", "x0", "x1", "effect", "low", "high"]
    alone = release.effect({"x0": [0.2], "x1": [0.5]})[0]
    assert float(rows[0]["effect"]) == pytest.approx(alone, rel=1e-12)  # two points at once may round otherwise
    assert float(rows[0]["low"]) < float(rows[0]["effect"]) < float(rows[0]["high"])
    assert rows[1]["effect"] == ""
    assert (
        run("effect", "release.json", "--at", "points.csv", folder=place).stdout == (place / "effects.csv").read_text()
    )

    assert run("report", "release.json", "--out", "report.html", folder=place).returncode == 0
    page = (place / "report.html").read_text()
    assert "differential privacy" in page
    assert 'banner"' not in page
    assert "://" not in page  # which no picture's base64 can hold by chance


def test_a_report_with_profiles_and_a_certificate_of_the_very_file(place):
    fit(place, "--quiet", out="certified.json")
    content = (place / "certified.json").read_bytes()
    (place / "certified.json").write_bytes(content + b"\n")  # the same release in another file
    (place / "people.csv").write_text("who,x0\nMrs A,0.25\nMr B,0.75\n")
    pages = ["--out", "certified.html", "--certificate", "certificate.html"]
    result = run("report", "certified.json", *pages, "--profiles", "people.csv", folder=place)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    digest = hashlib.sha256(content + b"\n").hexdigest()
    for name in ("certified.html", "certificate.html"):
        assert digest in (place / name).read_text().replace(" ", "")
    assert "Mrs A" in (place / "certified.html").read_text()
    (place / "people.csv").write_text("who,x0\nMrs A,7\n")
    refused = run("report", "certified.json", "--out", "never.html", "--profiles", "people.csv", folder=place)
    assert_refused(refused, "profile 1: x0 must be a number within its declared bounds")


def test_outputs_never_replace_a_device(place):
    fit(place, "--quiet", out="device.json")
    assert_refused(run("report", "device.json", "--out", "/dev/null", folder=place), "device or pipe")
    assert Path("/dev/null").is_char_device()
    assert_refused(run("report", "/dev/zero", folder=place), "it is not a file")


def test_parquet_and_options(place):
    options = [
        "--split",
        "disjoint",
        "--learner",
        "dr",
        "--neighbours",
        "add-or-remove-one",
        "--known-propensity",
        "0.5",
    ]
    assert fit(place, *options, "--quiet", data="rows.parquet", out="other.json").stdout == ""
    release = dpcate.Release.load(place / "other.json")
    assert release.spec.split == "disjoint"
    assert release.spec.nuisance == "known propensity, outcome by moments"
    assert release.neighbours == "add-or-remove-one"


def test_diagnostics_are_printed_after_a_fit_and_shown_in_the_report(place):
    asked = ["--diagnostic", "calibration", "--diagnostic", "overlap", "--diagnostic", "heterogeneity"]
    result = fit(place, *asked, out="checked.json", epsilon="3")
    assert result.returncode == 0, result.stderr
    for words in ("Overlap:", "Differences between people:", "Calibration:", "heterogeneity: slope", "part 2 of 2"):
        assert words in result.stdout
    assert "Outcome model:" not in result.stdout
    release = dpcate.Release.load(place / "checked.json")
    assert release.diagnostics.outcome is None
    assert len(release.diagnostics.overlap.treated) == 20
    assert run("report", "checked.json", "--out", "checked.html", folder=place).returncode == 0
    assert "Checks of the estimate" in (place / "checked.html").read_text()
    assert_refused(fit(place, "--diagnostic", "everything", out="never.json"), "list of names out of overlap, outcome")
    assert_refused(fit(place, "--diagnostic", "overlap", data="none.csv", out="never.json"), "does not exist")


def test_a_seed_is_shown_as_not_private_everywhere(place):
    result = fit(place, "--random-state", "1", out="seeded.json")
    assert "NOT PRIVATE" in result.stdout
    assert "NOT PRIVATE" in run("effect", "seeded.json", "--at", "points.csv", folder=place).stderr
    run("report", "seeded.json", "--out", "seeded.html", folder=place)
    assert "NOT PRIVATE" in (place / "seeded.html").read_text()


def test_queries_and_the_papers_calibration(place):
    (place / "profiles.csv").write_text("x0,x1\n0.2,0.5\n0.9,0.1\n")
    assert fit(place, "--queries", "profiles.csv", "--quiet", out="finite.json").returncode == 0
    assert run("effect", "finite.json", "--at", "profiles.csv", folder=place).returncode == 0
    assert_refused(run("effect", "finite.json", "--at", "points.csv", folder=place), "declared points only")

    paper = ["--calibration", "paper", "--second-stage", "features", "--split", "disjoint"]
    assert_refused(fit(place, *paper, out="never.json"), "--accept-unproven")
    result = fit(place, *paper, "--accept-unproven", out="paper.json")
    assert result.returncode == 0, result.stderr
    assert "UNPROVEN" in result.stdout
    assert "UNPROVEN" in run("effect", "paper.json", "--at", "profiles.csv", folder=place).stderr
    run("report", "paper.json", "--out", "paper.html", folder=place)
    assert "UNPROVEN" in (place / "paper.html").read_text()


def test_demo(tmp_path):
    result = run("demo", "--out", "demo", "--rows", "2000", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "release.json", "effects.csv", "effect.png", "report.html",
    }  # fmt: skip
    assert "PEHE" in result.stdout
    assert (tmp_path / "demo" / "effect.png").read_bytes().startswith(b"\x89PNG")
    assert np.isfinite(pd.read_csv(tmp_path / "demo" / "effects.csv")[["effect", "low", "high"]]).all(axis=None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": "0"}, "epsilon must lie above 0"),
        ({"epsilon": "-1"}, "epsilon must lie above 0"),
        ({"epsilon": "nan"}, "epsilon must be a finite number"),
        ({"epsilon": "much"}, "--epsilon"),
        ({"delta": "1"}, "delta must lie above 0"),
        ({"delta": "1.5"}, "delta must lie above 0"),
        ({"delta": "nan"}, "delta must be a finite number"),
        ({"schema": "none.toml"}, "cannot be read"),
        ({"data": "none.csv"}, "does not exist"),
        ({"data": "rows.txt"}, "must end in .csv"),
        ({"out": "missing folder/release.json"}, "cannot be written"),
    ],
)
def test_bad_calls(place, changes, message):
    if "out" not in changes:
        changes = {**changes, "out": "never.json"}
    assert_refused(fit(place, **changes), message)
    assert not (place / "never.json").exists()


FILES = {
    "empty.csv": (b"", "is empty"),
    "header.csv": (b"x0,x1,treated,outcome\n", "too few rows"),
    "few.csv": (b"x0,x1,treated,outcome\n0.1,0.2,1,3\n", "too few rows"),
    "missing.csv": (b"x0,treated,outcome\n0.1,1,3\n", "lacks the columns x1"),
    "binary.csv": (b"\0\1\2\3\n\0\0", "no readable header"),
    "empty.parquet": (b"", "is empty"),
    "corrupt.parquet": (b"PAR1 this is no parquet PAR1", "cannot be read as Parquet"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_tables(place, name):
    content, message = FILES[name]
    (place / name).write_bytes(content)
    assert_refused(fit(place, data=name, out="never.json"), message)
    assert not (place / "never.json").exists()


SCHEMAS = {
    "not toml": ("= = =", "not valid TOML"),
    "reversed": ("low = 1.0\nhigh = 0.0", "low < high"),
    "infinite": ("low = 0.0\nhigh = inf", "finite public bounds"),
    "not a number": ("low = 0.0\nhigh = nan", "finite public bounds"),
    "unbounded": ("low = 0.0", "missing required field `high`"),
    "wrong type": ('low = "a"\nhigh = 1.0', "Expected `float`"),
    "unknown key": ("low = 0.0\nhigh = 1.0\nmean = 0.5", "unknown field `mean`"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_bad_schemas(place, name):
    body, message = SCHEMAS[name]
    text = (
        f'treatment = "treated"\n[covariates.x0]\nkind = "number"\n{body}\n[outcome]\nname = "y"\nlow = 0\nhigh = 1\n'
    )
    (place / "bad.toml").write_text(text)
    assert_refused(fit(place, schema="bad.toml", out="never.json"), message)


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 10_000, b"\x80\x04pickle", b'{"format": "dpcate-release"}'])
def test_corrupt_releases(place, content):
    (place / "corrupt.json").write_bytes(content)
    for command in (
        ["effect", "corrupt.json", "--at", "points.csv"],
        ["report", "corrupt.json", "--out", "never.html"],
    ):
        assert_refused(run(*command, folder=place), "not a usable dpcate release")
    assert not (place / "never.html").exists()


def test_bad_points(place):
    fit(place, "--quiet", out="points.json")
    (place / "lacking.csv").write_text("x0\n0.5\n")
    assert_refused(run("effect", "points.json", "--at", "lacking.csv", folder=place), "lacks the columns x1")
    (place / "taken.csv").write_text("x0,x1,effect\n0.5,0.5,1\n")
    assert_refused(run("effect", "points.json", "--at", "taken.csv", folder=place), "already have columns named effect")
    assert_refused(run("effect", "points.json", "--at", "points.csv", "--alpha", "2", folder=place), "alpha must")


def test_usage_errors_are_one_line(place):
    assert_refused(run("fit", folder=place), "Missing option")
    assert_refused(run("nonsense", folder=place), "No such command")
    assert_refused(run("fit", "--wrong", folder=place), "No such option")
    assert run(folder=place).returncode == 2
    assert run("--version", folder=place).stdout == f"dpcate {dpcate.__version__}\n"


def test_overwriting_keeps_the_old_release_when_the_new_fit_is_refused(place):
    fit(place, "--quiet", out="kept.json")
    before = (place / "kept.json").read_bytes()
    assert_refused(fit(place, epsilon="0", out="kept.json"), "epsilon")
    assert (place / "kept.json").read_bytes() == before


def test_bench_names_the_missing_extra(place, monkeypatch, tmp_path):
    blocker = tmp_path / "econml.py"
    blocker.write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    assert_refused(run("bench", "speed", folder=place), "pip install 'dpcate[peers]'")


def test_a_defect_of_ours_shows_its_place_but_not_its_text(place, tmp_path, monkeypatch):
    """Whatever an unforeseen error says may hold data, so only its kind and line are shown."""
    (tmp_path / "sitecustomize.py").write_text(
        "import dpcate.release\n"
        "def save(self, path): raise RuntimeError('SENTINEL')\n"
        "dpcate.release.Release.save = save\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    result = fit(place, "--quiet", out="never.json")
    assert_refused(result, "internal error (RuntimeError", code=1)
    assert "SENTINEL" not in result.stderr
