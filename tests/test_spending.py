"""Fits on a ledger: refused before a row is read, charged before the first noise, never unpaid, whatever happens."""

import hashlib
import itertools
import sqlite3
import subprocess
import sys
import time
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import psycopg
import pytest
from sklearn.base import clone

import dpcate
from dpcate.errors import BudgetError, InputError, LedgerError
from dpcate.privacy import Charged, Gaussian
from dpcate.privacy.noise import ExactNoise
from dpcate.release import ChargedMechanism
from dpcate.spending import LedgerWarning

DATA = dpcate.datasets.synthetic(1, 300, seed=0)
DELTA = 1e-6


@pytest.fixture
def ledger(tmp_path):
    ledger = dpcate.Ledger(str(tmp_path / "ledger.db"), "trial")
    ledger.grant(dpcate.Grant.of(epsilon=1.0, delta=DELTA))
    return ledger


def estimator(ledger, **changes):
    return dpcate.PrivateCATE(DATA.schema, **{"epsilon": 0.5, "delta": DELTA, "ledger": ledger, **changes})


def fit(ledger, **changes):
    return estimator(ledger, **changes).fit(DATA.Y, DATA.T, X=DATA.X)


def test_a_fit_is_charged_and_its_release_recorded(ledger, tmp_path):
    release = fit(ledger).release_
    release.save(tmp_path / "release.json")
    charged = ledger.history()[-1]
    assert charged.sha256 == hashlib.sha256((tmp_path / "release.json").read_bytes()).hexdigest()
    assert msgspec.json.decode(charged.details, type=list[ChargedMechanism]) == release.charges
    assert ledger.account().epsilon_spent() == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("split", ["none", "crossfit", "disjoint"])
@pytest.mark.parametrize("second_stage", ["features", "kernel", "moments"])
def test_the_charge_covers_what_the_release_says_was_paid(ledger, split, second_stage):
    release = fit(ledger, split=split, second_stage=second_stage).release_
    (event,) = ledger.account().charges
    for part in ("part 1 of 2", "part 2 of 2"):
        paid = [charge.spent.mu for charge in release.charges if charge.rows in ("all rows", part)]
        assert np.sqrt(np.sum(np.square(paid))) <= event.mu * (1 + 1e-9)


def test_a_refused_fit_reads_no_row(ledger):
    class Unreadable:
        def __getattr__(self, name):
            raise AssertionError("a row was read")

    with pytest.raises(BudgetError, match=r"does not cover this fit of epsilon 1\.1"):
        estimator(ledger, epsilon=1.1).fit(table=Unreadable())
    assert ledger.account().charges == ()


def test_the_charge_is_on_disk_before_the_first_noise(ledger, monkeypatch):
    seen = []

    def add(self, value, sd):
        seen.append(len(ledger.account().charges))
        raise MemoryError

    monkeypatch.setattr(ExactNoise, "add", add)
    with pytest.raises(MemoryError):
        fit(ledger)
    assert seen == [1]
    assert ledger.history()[-1].sha256 is None


def test_a_table_that_cannot_be_used_costs_nothing(ledger):
    with pytest.raises(dpcate.errors.DataError):
        estimator(ledger).fit(table="none.csv")
    with pytest.raises(dpcate.errors.DataError, match="too few"):
        estimator(ledger).fit(DATA.Y[:5], DATA.T[:5], X=DATA.X[:5])
    assert ledger.account().charges == ()


def test_each_fit_pays_until_the_grant_is_spent(ledger):
    fitted = estimator(ledger)
    fits = iter(lambda: fitted.fit(DATA.Y, DATA.T, X=DATA.X), None)
    with pytest.raises(BudgetError):
        list(itertools.islice(fits, 100))
    account = ledger.account()
    assert 2 < len(account.charges) < 10
    assert account.epsilon_spent() <= 1.0
    assert fitted.release_.epsilon == 0.5


def test_somebody_else_may_spend_the_rest_while_rows_are_read(ledger, monkeypatch):
    monkeypatch.setattr("dpcate.estimator.read_rows", spend_then_read(ledger))
    with pytest.raises(BudgetError, match="nothing is left"):
        fit(ledger)
    assert len(ledger.account().charges) == 1


def spend_then_read(ledger):
    from dpcate.data import read_rows

    def read(*arguments):
        ledger.charge(estimator_request(epsilon=1.0))
        return read_rows(*arguments)

    return read


def estimator_request(**changes):
    from dpcate.estimator import plan_of

    return plan_of(estimator(None, **changes)).request


def test_what_is_not_private_is_not_paid_for(ledger):
    for changes in ({"random_state": 0}, {"calibration": "paper", "split": "disjoint"}):
        with pytest.raises(InputError, match="private fits only"):
            fit(ledger, **changes)
    with pytest.raises(InputError, match=r"dpcate\.Ledger"):
        fit("ledger.db")
    assert ledger.account().charges == ()


def test_which_fits_are_gaussian():
    private = dpcate.Private(model=Constant(), epsilon=0.1, delta=0.0, neighbours="replace-one")
    public = dpcate.Public(Constant())
    known = dpcate.KnownNuisances(propensity=0.5, outcome=lambda columns: 0.0)
    for changes, gaussian in [
        ({}, True),
        ({"second_stage": "kernel", "nuisance": "moments"}, True),
        ({"second_stage": "moments", "nuisance": known}, True),
        ({"nuisance": dpcate.KnownPropensity(0.5)}, True),
        ({"nuisance": dpcate.SuppliedNuisances(propensity=public, outcome=public)}, True),
        ({"nuisance": dpcate.SuppliedNuisances(propensity=public, outcome=private)}, False),
        ({"nuisance": dpcate.KnownPropensity(0.5, outcome="network")}, False),
        ({"nuisance": "network"}, False),
        ({"second_stage": "network"}, False),
    ]:
        assert estimator_request(**changes).gaussian is gaussian, changes


class Constant:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), 0.5)


def test_other_fits_take_what_was_set_aside(tmp_path):
    ledger = dpcate.Ledger(tmp_path / "ledger.db", "trial")
    ledger.grant(dpcate.Grant.of(epsilon=2.0, delta=DELTA, declared=(0.5, 1e-7)))
    private = dpcate.Private(model=Constant(), epsilon=0.1, delta=0.0, neighbours="replace-one")
    nuisance = dpcate.SuppliedNuisances(propensity=private, outcome=private)
    with pytest.raises(BudgetError, match="not all Gaussian"):
        fit(ledger, nuisance=nuisance)
    fit(ledger, nuisance=nuisance, delta=1e-7)
    assert not any(isinstance(event, Gaussian) for event in ledger.account().charges)


def test_an_unreachable_ledger_stops_a_fit_but_not_its_release(ledger, monkeypatch):
    with pytest.raises(LedgerError, match="does not exist"):
        fit(dpcate.Ledger(ledger.url + ".none", "trial"))

    def lost(self, number, **release):
        raise LedgerError("the ledger 'x' cannot be reached")

    monkeypatch.setattr(dpcate.Ledger, "record", lost)
    with pytest.warns(LedgerWarning, match="charged, but"):
        assert fit(ledger).release_.private
    assert len(ledger.account().charges) == 1


def test_it_is_a_parameter_like_others(ledger):
    copied = clone(estimator(ledger))
    assert copied.get_params()["ledger"] == ledger


@pytest.mark.parametrize(("ledger_url", "times"), [("sqlite", 100), ("postgresql", 20)], indirect=["ledger_url"])
def test_killed_at_random_moments(ledger_url, times, tmp_path):
    """The ledger opens, every release file is whole and paid for, and it can be spent from as before."""
    ledger = dpcate.Ledger(ledger_url, "trial")
    ledger.grant(dpcate.Grant.of(epsilon=5.0, delta=DELTA))
    DATA.schema.save(tmp_path / "schema.toml")
    columns = {"x0": DATA.X[:, 0], "x1": DATA.X[:, 1], "treated": DATA.T.astype(int), "outcome": DATA.Y}
    pd.DataFrame(columns).to_csv(tmp_path / "rows.csv", index=False)
    program = [sys.executable, str(Path(__file__).with_name("kill_fits.py")), str(times), ledger.url, "trial"]
    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    charges = [entry for entry in ledger.history() if isinstance(entry, Charged)]
    recorded = {charge.sha256 for charge in charges if charge.sha256}
    releases = list(tmp_path.glob("release-*.json"))
    assert len(releases) >= 1
    assert len(charges) >= len(recorded) >= len(releases)
    for file in releases:
        assert dpcate.Release.load(file).private
        assert hashlib.sha256(file.read_bytes()).hexdigest() in recorded
    for file in tmp_path.glob(".release-*"):  # killed between naming and renaming
        assert dpcate.Release.load(file).private
    visible = {file.name for file in tmp_path.iterdir() if not file.name.startswith(".")}
    expected = {"schema.toml", "rows.csv", "ledger.db", *(file.name for file in releases)}
    assert visible <= expected | {"ledger.db-journal"}
    require_sound(ledger.url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(ledger, epsilon=0.1)
    assert len(ledger.account().charges) == len(charges) + 1


def require_sound(url):
    """The database itself finds nothing damaged, and nobody who was killed holds on to it."""
    if not url.startswith("postgresql"):
        connection = sqlite3.connect(url)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        return
    with psycopg.connect(url) as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        for _ in range(100):  # the server notices within moments that a client is gone
            (left,) = connection.execute(f"SELECT count(*) {others} AND state <> 'idle'").fetchone()
            if left == 0:
                break
            time.sleep(0.1)
        assert left == 0
