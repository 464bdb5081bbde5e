"""`dpcate ledger` and `dpcate fit --ledger` as a user runs them."""

import json
import subprocess
import sys

import pandas as pd
import pytest

import dpcate

DATA = dpcate.datasets.synthetic(1, 300, seed=0)


def run(*arguments, folder, **environment):
    return subprocess.run(
        [sys.executable, "-m", "dpcate", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": "", "OMP_NUM_THREADS": "1", **environment},
    )


def fit(place, *more, **environment):
    options = ["--schema", "schema.toml", "--data", "rows.csv", "--delta", "1e-6", "--quiet"]
    return run("fit", *options, *more, folder=place, **environment)


def assert_refused(result, message, code=2):
    assert (result.returncode, result.stdout) == (code, ""), result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a schema, rows, and a ledger with one grant."""
    folder = tmp_path_factory.mktemp("curator")
    DATA.schema.save(folder / "schema.toml")
    columns = {"x0": DATA.X[:, 0], "x1": DATA.X[:, 1], "treated": DATA.T.astype(int), "outcome": DATA.Y}
    pd.DataFrame(columns).to_csv(folder / "rows.csv", index=False)
    result = run("ledger", "grant", "--dataset", "trial", "--epsilon", "1", "--delta", "1e-6", folder=folder)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return folder


def test_fits_are_charged_shown_and_finally_refused(place):
    account = ["--ledger", "ledger.db", "--dataset", "trial"]
    assert fit(place, *account, "--epsilon", "0.9", "--out", "first.json").returncode == 0
    refused = fit(place, *account, "--epsilon", "0.9", "--out", "never.json", "--data", "none.csv")
    assert_refused(refused, "epsilon 0.3", code=3)
    assert not (place / "never.json").exists()

    shown = json.loads(run("ledger", "show", "--json", folder=place).stdout)
    assert [(line["dataset"], line["fits"]) for line in shown] == [("trial", 1)]
    assert shown[0]["epsilon_spent"] == pytest.approx(0.9, rel=1e-6)
    assert "trial" in run("ledger", "show", "--dataset", "trial", folder=place).stdout

    granted, charged = json.loads(run("ledger", "history", "--dataset", "trial", "--json", folder=place).stdout)
    assert (granted["what"], charged["what"]) == ("grant", "fit")
    assert len(charged["details"]) == len(dpcate.Release.load(place / "first.json").charges)
    page = run("ledger", "history", "--dataset", "trial", "--details", folder=place, COLUMNS="200").stdout
    assert "effect and outcome: round 1, scores, all rows" in page
    assert charged["sha256"][:12] in page


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["ledger", "show", "--ledger", "none.db"], "'none.db' does not exist"),
        (["ledger", "show", "--ledger", "rows.csv"], "not a ledger"),
        (["ledger", "history", "--dataset", "other"], "no grant for the dataset 'other'"),
        (["ledger", "grant", "--dataset", "trial", "--epsilon", "2", "--delta", "1e-6"], "has a grant already"),
        (["ledger", "grant", "--dataset", "other", "--epsilon", "0", "--delta", "1e-6"], "epsilon must lie above 0"),
        (["ledger", "grant", "--epsilon", "1", "--delta", "1e-6"], "--dataset"),
    ],
)
def test_bad_calls(place, command, message):
    assert_refused(run(*command, folder=place), message)


def test_bad_fits(place):
    assert_refused(fit(place, "--epsilon", "0.1", "--ledger", "ledger.db"), "go together")
    url = "postgresql://curator:SECRET@127.0.0.1:1/db"
    assert_refused(fit(place, "--epsilon", "0.1", DPCATE_LEDGER=url), "go together")
    result = fit(place, "--epsilon", "0.1", "--dataset", "trial", DPCATE_LEDGER=url)
    assert_refused(result, "'127.0.0.1/db' cannot be reached")
    assert "SECRET" not in result.stderr
    seeded = fit(place, "--epsilon", "0.1", "--ledger", "ledger.db", "--dataset", "trial", "--random-state", "1")
    assert_refused(seeded, "private fits only")
