"""`dpcate plan` as a user runs it: a process, its exit code, its output, its one-line errors."""

import json
import subprocess
import sys

import matplotlib.image
import pytest

import dpcate

SCHEMA = dpcate.Schema(
    covariates={"age": dpcate.Number(18, 98), "sex": dpcate.Category(["f", "m"])},
    treatment="drug",
    outcome=dpcate.Outcome("score", low=0, high=60),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planner")
    SCHEMA.save(folder / "schema.toml")
    (folder / "broken.toml").write_text("treatment = ")
    (folder / "points.csv").write_text("age,sex\n30,f\n60,m\n")
    return folder


def plan(folder, *more, schema="schema.toml", rows="100", epsilon="1"):
    options = ["--schema", schema, "--rows", rows, "--epsilon", epsilon]
    return subprocess.run(
        [sys.executable, "-m", "dpcate", "plan", *options, *more],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_tables_for_people(place):
    result = plan(place, "--compare", "moments", "--known-propensity", "0.4", "--queries", "points.csv")
    assert (result.returncode, result.stderr) == (0, "")
    for words in ("noise that privacy adds, sd", "share of μ²", "Recommended", "No data was read"):
        assert words in result.stdout


def test_json_for_machines_and_a_picture(place):
    options = ["--compare", "none", "--width", "50", "--plot", "width.png", "--outcome-sd", "8", "--json"]
    result = plan(
        place, *options, "--second-stage", "features", "--neighbours", "add-or-remove-one", "--treated", "0.3"
    )
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["noise_sd"] > 0
    assert document["rows_needed"] >= 10
    assert document["neighbours"] == "add-or-remove-one"
    assert document["assumptions"] == {"outcome_sd": 8.0, "effect_sd": 2.0, "treated": 0.3}
    assert matplotlib.image.imread(place / "width.png").ndim == 3


def test_quiet_prints_nothing(place):
    result = plan(place, "--compare", "none", "--quiet", rows="20")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        ({"rows": "0"}, [], "rows must be a whole number from 1"),
        ({"rows": "many"}, [], "--rows"),
        ({}, ["--delta", "1"], "delta must lie above 0"),
        ({}, ["--width", "0"], "width must be a positive number"),
        ({"schema": "none.toml"}, [], "cannot be read"),
        ({"schema": "broken.toml"}, [], "not valid TOML"),
        ({}, ["--plot", "width.pdf"], "must end in .png or .svg"),
        ({}, ["--compare", "forest"], "compare must be a list of second stages"),
        ({}, ["--treated", "0.5", "--known-propensity", "0.5"], "give one of them"),
    ],
)
def test_bad_calls_are_one_line(place, changes, more, message):
    result = plan(place, *more, **changes)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_diagnostics_are_priced(place):
    result = plan(place, "--diagnostic", "overlap", "--diagnostic", "calibration", "--compare", "none", "--json")
    shares = {(share["name"], share["rows"]): share["fraction"] for share in json.loads(result.stdout)["shares"]}
    assert shares["overlap", "part 1 of 2"] == pytest.approx(dpcate.diagnostics.share_of("overlap"))
    assert ("calibration", "part 2 of 2") in shares
    refused = plan(place, "--diagnostic", "horoscope", "--compare", "none")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
