"""The command line for machines: --json and --quiet in one way, progress for people only, completion in shells."""

import json
import os
import pty
import shutil
import subprocess
import sys
from decimal import Decimal

import pandas as pd
import pytest
import typer

import dpcate
from dpcate import cli

DATA = dpcate.datasets.synthetic(1, 300, seed=0)
FIT = ["fit", "--schema", "schema.toml", "--data", "rows.csv", "--epsilon", "0.5", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a schema, rows, points, a release, a seeded release and a ledger."""
    folder = tmp_path_factory.mktemp("machine")
    DATA.schema.save(folder / "schema.toml")
    columns = {"x0": DATA.X[:, 0], "x1": DATA.X[:, 1], "treated": DATA.T.astype(int), "outcome": DATA.Y}
    pd.DataFrame(columns).to_csv(folder / "rows.csv", index=False)
    (folder / "points.csv").write_text("name,x0,x1\nfirst,0.2,0.5\nsecond,0.9,\n")
    for name, seed in (("release.json", None), ("seeded.json", 1)):
        estimator = dpcate.PrivateCATE(DATA.schema, epsilon=1.0, delta=1e-6, random_state=seed)
        estimator.fit(DATA.Y, DATA.T, X=DATA.X).release_.save(folder / name)
    dpcate.Ledger(folder / "ledger.db", "trial").grant(dpcate.Grant.of(epsilon=1.0, delta=1e-6))
    return folder


@pytest.fixture
def call(place, monkeypatch, capsys):
    """Run the entry point in this process: exit code, standard output, standard error."""
    monkeypatch.chdir(place)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpcate", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return end.value.code, said.out, said.err

    return run


def answered(result):
    code, out, err = result
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out)


def test_fit_answers_with_what_its_release_says(call, place):
    ledger = ["--ledger", "ledger.db", "--dataset", "trial", "--out", "made.json"]
    facts = answered(call(*FIT, *ledger, "--json"))
    release = dpcate.Release.load(place / "made.json")
    assert facts["release"] == "made.json"
    assert (facts["private"], facts["guarantee"], facts["epsilon"]) == (True, "proven", 0.5)
    assert facts["average"] == {"value": release.average.value, "sd": release.average.sd}
    assert facts["ledger"]["fits"] == 1
    assert facts["sha256"] == dpcate.Ledger("ledger.db", "trial").history()[-1].sha256

    code, out, err = call(*FIT, *ledger, "--epsilon", "3", "--json")
    assert (code, out) == (3, "")
    assert json.loads(err)["error"]["kind"] == "BudgetError"


def test_a_ledger_that_is_lost_after_the_fit_does_not_hide_the_release(call, place, monkeypatch):
    def lost(self):
        raise dpcate.errors.LedgerError("the ledger 'x' cannot be reached")

    monkeypatch.setattr(dpcate.Ledger, "account", lost)
    grant = dpcate.Grant.of(epsilon=1.0, delta=1e-6)
    dpcate.Ledger(place / "ledger.db", "lost").grant(grant)
    code, out, err = call(*FIT, "--ledger", "ledger.db", "--dataset", "lost", "--out", "lost.json", "--json")
    assert (code, json.loads(out)["ledger"]) == (0, None)
    assert "the release is written" in json.loads(err)["warning"]
    assert dpcate.Release.load(place / "lost.json").private


def test_effects_as_records(call, place):
    answer = answered(call("effect", "release.json", "--at", "points.csv", "--json"))
    first, second = answer["effects"]
    release = dpcate.Release.load(place / "release.json")
    assert first["effect"] == pytest.approx(release.effect([[0.2, 0.5]])[0], rel=1e-12)
    assert first["low"] < first["effect"] < first["high"]
    assert (second["name"], second["x1"], second["effect"]) == ("second", None, None)
    written = answered(call("effect", "release.json", "--at", "points.csv", "--out", "effects.csv", "--json"))
    assert written == {"private": True, "guarantee": "proven", "alpha": 0.1, "out": "effects.csv"}
    assert call("effect", "release.json", "--at", "points.csv", "--out", "e.csv", "--quiet") == (0, "", "")
    assert (place / "e.csv").read_text() == (place / "effects.csv").read_text()


def test_points_may_have_columns_of_any_kind(call, place):
    odd = {"price": [Decimal("1.50"), None], "whole": [1, 2], "yes": [True, False], "wide": [float("inf"), 0.5]}
    pd.DataFrame({"x0": [0.2, 0.9], "x1": [0.5, 0.5], **odd}).to_parquet(place / "points.parquet")
    first, second = answered(call("effect", "release.json", "--at", "points.parquet", "--json"))["effects"]
    assert [first[name] for name in odd] == ["1.50", 1, True, None]
    assert [second[name] for name in odd] == [None, 2, False, 0.5]


def test_what_is_not_private_says_so_to_machines_too_and_cannot_be_silenced(call):
    code, out, err = call("effect", "seeded.json", "--at", "points.csv", "--json", "--quiet")
    assert (code, json.loads(out)["private"]) == (0, False)
    assert "NOT PRIVATE" in json.loads(err)["warning"]
    code, out, err = call("effect", "seeded.json", "--at", "points.csv", "--quiet")
    assert err.startswith("warning: this release is NOT PRIVATE")


def test_the_other_commands_answer(call, place):
    pages = answered(call("report", "release.json", "--out", "r.html", "--certificate", "c.html", "--json"))
    assert (pages["report"], pages["certificate"]) == ("r.html", "c.html")
    assert pages["sha256"] in (place / "c.html").read_text().replace(" ", "")
    made = answered(call("schema", "init", "rows.csv", "--out", "template.toml", "--json"))
    assert list(made["columns"]) == ["x0", "x1", "treated", "outcome"]
    shown = answered(call("schema", "init", "rows.csv", "--json"))
    assert shown["template"] == (place / "template.toml").read_text()
    checked = answered(call("schema", "check", "schema.toml", "--data", "rows.csv", "--json"))
    assert checked == {
        "usable": True, "treatment": "treated", "outcome": "outcome", "covariates": ["x0", "x1"], "notes": [],
    }  # fmt: skip
    assert call("schema", "check", "schema.toml", "--quiet") == (0, "", "")
    grant = ["ledger", "grant", "--dataset", "other", "--epsilon", "2", "--delta", "1e-6"]
    granted = answered(call(*grant, "--json"))
    assert granted["epsilon_left"] == pytest.approx(2.0, abs=2e-3)  # rounded down, to be on the safe side
    assert granted in answered(call("ledger", "show", "--json"))
    assert answered(call("ledger", "history", "--dataset", "other", "--json"))[0]["what"] == "grant"
    demo = answered(call("demo", "--out", "demo", "--rows", "300", "--json"))
    assert all((place / name).exists() for name in demo["files"])
    assert demo["pehe"] > 0
    assert call("demo", "--out", "demo", "--rows", "300", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["fit", "--json"], "UsageError"),
        (["nonsense", "--json"], "UsageError"),
        ([*FIT, "--epsilon", "0", "--json"], "InputError"),
        ([*FIT, "--data", "none.csv", "--json"], "DataError"),
        (["effect", "none.json", "--at", "points.csv", "--json"], "DataError"),
        (["report", "rows.csv", "--json"], "ReleaseError"),
        (["schema", "check", "rows.csv", "--json"], "SchemaError"),
        (["ledger", "show", "--ledger", "none.db", "--json"], "LedgerError"),
    ],
)
def test_errors_have_one_form(call, command, kind):
    code, out, err = call(*command)
    assert (code, out, err.count("\n")) == (2, "", 1)
    error = json.loads(err)["error"]
    assert list(error) == ["kind", "message", "exit_code"]
    assert (error["kind"], error["exit_code"]) == (kind, 2)
    assert error["message"]


def commands(group=None, path=()):
    """Every command with the names of its options."""
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            options = {option: parameter.help for parameter in command.params for option in parameter.opts}
            yield " ".join((*path, name)), options


def test_every_command_takes_the_same_options_for_machines():
    listed = {name: options for name, options in commands() if not name.startswith("bench")}
    assert {"fit", "effect", "report", "ledger show", "schema check"} <= set(listed)
    assert [name for name, options in listed.items() if "--json" not in options] == []
    assert [name for name, options in listed.items() if "--quiet" not in options] == ["schema init"]  # says nothing
    for option in ("--json", "--quiet"):
        assert len({options[option] for options in listed.values() if option in options}) == 1


def on_a_terminal(arguments, place):
    """Standard output of a process whose standard error is a terminal, and what that terminal was sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpcate", *arguments],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            seen += chunk
    except OSError:  # what Linux answers once the other side is closed
        pass
    os.close(ours)
    out = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    return out.decode(), seen.decode()


def test_progress_is_for_terminals_only_and_never_in_the_answer(place):
    out, seen = on_a_terminal([*FIT, "--out", "shown.json", "--json"], place)
    assert json.loads(out)["release"] == "shown.json"
    assert "private second stage" in seen
    assert on_a_terminal([*FIT, "--out", "hidden.json", "--quiet"], place) == ("", "")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """`dpcate` under its own name, as it is installed."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "dpcate"
    script.write_text(f"#!{sys.executable}\nfrom dpcate.cli import main\nmain()\n")
    script.chmod(0o755)
    return script


def test_completion_in_bash(program, tmp_path):
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def bash(script):
        done = subprocess.run(
            [shutil.which("bash"), "-c", script], capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "complete -o default -F" in bash("dpcate --show-completion; true")
    bash("dpcate --install-completion; true")
    ask = (
        'source ~/.bashrc; COMP_WORDS=({words}); COMP_CWORD={last}; _dpcate_completion dpcate; echo "${{COMPREPLY[@]}}"'
    )
    words = {"dpcate le": ["ledger"], "dpcate fit --split cr": ["crossfit"]}
    for typed, offered in words.items():
        typed = typed.split(" ")
        quoted = " ".join(f'"{word}"' for word in typed)
        assert bash(ask.format(words=quoted, last=len(typed) - 1)).split() == offered
