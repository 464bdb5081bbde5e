"""The ledger on SQLite and on PostgreSQL. Guarantee 7: a charge is durable when it returns, and was made alone."""

import copy
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from dpcate.errors import BudgetError, InputError, LedgerError
from dpcate.privacy import Budget, Declared, Gaussian, Grant, Ledger, Request, granted_datasets, migrations
from dpcate.privacy import database as database_module

DELTA = 1e-6
GRANT = Grant.of(epsilon=1.0, delta=DELTA)
SECRET = "postgresql://curator:SECRET@127.0.0.1:1/db"


def request(epsilon=0.5, delta=DELTA, gaussian=True, neighbours="replace-one", person=None):
    budget = Budget(epsilon=epsilon, delta=delta, neighbours=neighbours)
    return Request(budget=budget, gaussian=gaussian, person=person)


@pytest.fixture
def ledger(ledger_url):
    ledger = Ledger(ledger_url, "trial")
    ledger.grant(GRANT)
    return ledger


def raw(ledger, statement):
    """Somebody goes around the library."""
    url = ledger.url if "://" in ledger.url else f"sqlite:///{ledger.url}"
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.begin() as connection:
            return connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


def test_a_charge_is_there_for_whoever_opens_the_ledger_next(ledger):
    number = ledger.charge(request(0.5))
    account = Ledger(ledger.url, "trial").account()
    assert account.grant == GRANT
    assert account.charges == (Gaussian(request(0.5).budget.mu),)
    ledger.record(number, sha256="ab" * 32, details="[]")
    granted, charged = ledger.history()
    assert granted.grant == GRANT
    assert (charged.number, charged.epsilon, charged.delta) == (number, 0.5, DELTA)
    assert (charged.sha256, charged.details) == ("ab" * 32, "[]")


def test_an_overdraft_is_refused_and_says_what_is_left(ledger):
    ledger.charge(request(0.9))
    for spend in (ledger.require, ledger.charge):
        with pytest.raises(BudgetError, match=r"grant of 'trial' does not cover.*epsilon 0\.\d+ at this delta is left"):
            spend(request(0.9))
    with pytest.raises(BudgetError, match="not all Gaussian"):
        ledger.charge(request(0.1, gaussian=False))
    assert len(ledger.account().charges) == 1
    Ledger(ledger.url, "spent").grant(GRANT)
    ledger = Ledger(ledger.url, "spent")
    ledger.charge(request(1.0))
    with pytest.raises(BudgetError, match="nothing is left"):
        ledger.require(request(0.01))


def test_datasets_are_apart(ledger):
    other = Ledger(ledger.url, "Ωther, with 'quotes' and %")
    with pytest.raises(LedgerError, match="no grant for the dataset"):
        other.charge(request())
    other.grant(
        Grant.of(epsilon=3.0, delta=DELTA, declared=(1.0, 1e-7), person="subject", neighbours="add-or-remove-one")
    )
    other.charge(request(1.0, 1e-7, gaussian=False, person="subject", neighbours="add-or-remove-one"))
    assert other.account().charges == (Declared(1.0, 1e-7),)
    assert ledger.account().charges == ()
    assert set(granted_datasets(ledger.url)) == {"trial", other.dataset}
    with pytest.raises(BudgetError, match="of what was set aside epsilon 0 and delta 0"):
        other.charge(request(1.0, 1e-7, gaussian=False, person="subject", neighbours="add-or-remove-one"))


def test_one_relation_and_one_unit_per_grant(ledger):
    with pytest.raises(InputError, match="is for neighbours replace-one; this fit is for add-or-remove-one"):
        ledger.charge(request(neighbours="add-or-remove-one"))
    with pytest.raises(InputError, match="protects persons by each row; this fit by column 'subject'"):
        ledger.require(request(person="subject"))


def test_a_grant_is_given_once_and_only_ever_extended(ledger):
    larger = Grant.of(epsilon=2.0, delta=DELTA)
    with pytest.raises(InputError, match="has a grant already"):
        ledger.grant(larger)
    ledger.charge(request(1.0))
    ledger.grant(larger, extend=True)
    ledger.charge(request(1.0))
    for smaller in (GRANT, Grant.of(epsilon=2.0, delta=DELTA, declared=(0.5, 1e-7))):
        with pytest.raises(InputError, match="no part of a grant smaller"):
            ledger.grant(smaller, extend=True)
    for other in ({"person": "subject"}, {"neighbours": "add-or-remove-one"}):
        with pytest.raises(InputError, match="keeps the neighbour relation"):
            ledger.grant(Grant.of(epsilon=3.0, delta=DELTA, **other), extend=True)
    with pytest.raises(LedgerError, match="no grant for"):
        Ledger(ledger.url, "other").grant(GRANT, extend=True)
    assert [type(entry).__name__ for entry in ledger.history()] == ["Granted", "Charged", "Granted", "Charged"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dpcate_charges SET mu = 0.001",
        "DELETE FROM dpcate_charges",
        "UPDATE dpcate_grants SET epsilon = 50, mu = 50",
        "DELETE FROM dpcate_grants",
        "UPDATE dpcate_releases SET sha256 = 'x'",
        "DELETE FROM dpcate_releases",
    ],
)
def test_nothing_is_changed_or_removed(ledger, statement):
    ledger.record(ledger.charge(request()), sha256="a", details="[]")
    before = ledger.history()
    with pytest.raises(DBAPIError, match="append-only"):
        raw(ledger, statement)
    assert ledger.history() == before


def test_nothing_is_replaced_or_truncated(ledger):
    number = ledger.charge(request())
    around = "TRUNCATE dpcate_charges CASCADE" if "://" in ledger.url else (
        f"INSERT OR REPLACE INTO dpcate_charges VALUES ({number}, 'trial', 'now', 0.1, 0.1, 0.001)"
    )  # fmt: skip
    with pytest.raises(DBAPIError, match="append-only"):
        raw(ledger, around)
    ledger.record(number, sha256="a", details="[]")
    with pytest.raises(LedgerError, match="append-only"):
        ledger.record(number, sha256="b", details="[]")
    assert ledger.history()[-1].sha256 == "a"


def test_two_hundred_processes_spend_one_grant_at_the_same_moment(ledger_url):
    """None hangs, none spends what is not there, and every refused one says so. PostgreSQL has room for 100 at once."""
    ledger = Ledger(ledger_url, "trial")
    grant = Grant.of(epsilon=1.5, delta=DELTA)
    ledger.grant(grant)
    program = [sys.executable, str(Path(__file__).with_name("spend_together.py")), ledger_url, "trial", "200"]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    account = ledger.account()
    paid = [answer["paid"] for answer in answers if "paid" in answer]
    refused = [answer for answer in answers if "paid" not in answer]
    assert len(answers) == 200
    assert len(set(paid)) == len(paid) == len(account.charges)
    assert account.epsilon_spent() <= grant.budget.epsilon
    assert paid
    assert refused
    for answer in refused:
        assert answer["exit_code"] == 3
        assert "does not cover this fit" in answer["refused"]
        assert "left" in answer["refused"]
        assert account.event_for(request(answer["epsilon"])) is None  # there was not enough for it, then or later


def test_old_tables_are_brought_up_to_date(ledger, monkeypatch):
    def second(connection):
        connection.exec_driver_sql("CREATE TABLE dpcate_new (id INTEGER PRIMARY KEY)")

    number = ledger.charge(request())
    monkeypatch.setattr(migrations, "STEPS", [*migrations.STEPS, second])
    monkeypatch.setattr(database_module, "STEPS", migrations.STEPS)
    assert len(ledger.account().charges) == 1
    raw(ledger, f"INSERT INTO dpcate_new VALUES ({number})")
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="newer dpcate"):
        ledger.charge(request())


def test_a_failed_migration_leaves_nothing(ledger_url, monkeypatch):
    def broken(connection):
        connection.exec_driver_sql("CREATE TABLE dpcate_half (id INTEGER)")
        connection.exec_driver_sql("NONSENSE")

    monkeypatch.setattr(migrations, "STEPS", [*migrations.STEPS, broken])
    ledger = Ledger(ledger_url, "trial")
    with pytest.raises(LedgerError):
        ledger.grant(GRANT)
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="holds no grants yet"):
        ledger.account()
    ledger.grant(GRANT)
    with pytest.raises(DBAPIError):
        raw(ledger, "SELECT * FROM dpcate_half")


def test_a_busy_file_is_waited_for_and_then_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "PATIENCE_S", 0.2)
    ledger = Ledger(tmp_path / "ledger.db", "trial")
    ledger.grant(GRANT)
    blocker = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(LedgerError, match="in use by other writers"):
            ledger.charge(request())
    finally:
        blocker.close()
    ledger.charge(request())


def test_a_lock_on_postgresql_is_waited_for_and_then_reported(postgres_url, monkeypatch):
    import psycopg

    ledger = Ledger(postgres_url, "trial")
    ledger.grant(GRANT)
    monkeypatch.setattr(database_module, "PATIENCE_S", 1.0)
    with psycopg.connect(postgres_url) as blocker:
        blocker.execute("SELECT pg_advisory_xact_lock(%s)", [database_module._key("trial")])
        with pytest.raises(LedgerError, match="in use by other writers"):
            ledger.charge(request())
        Ledger(postgres_url, "other").grant(GRANT)
    ledger.charge(request())


def test_other_files_are_refused_and_left_alone(tmp_path):
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger(tmp_path / "none.db", "trial").account()
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger(tmp_path / "missing" / "ledger.db", "trial").grant(GRANT)
    with pytest.raises(LedgerError):
        Ledger(tmp_path, "trial").grant(GRANT)
    for content in (b"x0,x1\n1,2\n" * 100, b"SQLite format 3\0" + bytes(100)):
        (tmp_path / "file").write_bytes(content)
        for use in (Ledger(tmp_path / "file", "t").account, lambda: Ledger(tmp_path / "file", "t").grant(GRANT)):
            with pytest.raises(LedgerError, match="not a ledger, is damaged"):
                use()
        assert (tmp_path / "file").read_bytes() == content
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerError, match="holds no grants yet"):
        Ledger(tmp_path / "empty", "t").charge(request())


def test_a_damaged_ledger_is_refused(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", "trial")
    ledger.grant(GRANT)
    for _ in range(3):
        ledger.charge(request(0.01))
    content = bytearray((tmp_path / "ledger.db").read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    (tmp_path / "ledger.db").write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge(request(0.01))


@pytest.mark.parametrize(
    "url",
    ["", "sqlite://", "sqlite:///:memory:", "mysql://u:SECRET@h/db", "postgresql://u:SECRET@h:port/db", "://", "a\0b",
     "postgresql://h/db?plugin=SECRET"],
)  # fmt: skip
def test_bad_urls_are_refused_without_their_passwords(url):
    with pytest.raises(LedgerError, match="ledger") as refused:
        Ledger(url, "trial")
    assert "SECRET" not in str(refused.value)


def test_an_unreachable_server_is_reported_without_the_password():
    ledger = Ledger(SECRET, "trial")
    for use in (ledger.account, lambda: ledger.charge(request()), lambda: ledger.grant(GRANT)):
        with pytest.raises(LedgerError, match=r"'127\.0\.0\.1/db' cannot be reached") as refused:
            use()
        assert "SECRET" not in str(refused.value)
        assert "\n" not in str(refused.value)


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"dpcate\[postgres\]"):
        Ledger(SECRET, "trial").account()


def test_it_copies_and_shows_no_password():
    ledger = Ledger(SECRET, "trial")
    assert copy.deepcopy(ledger) == ledger
    assert repr(ledger) == "Ledger('127.0.0.1/db', 'trial')"


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 7])
def test_bad_dataset_names(name):
    with pytest.raises(InputError, match="dataset"):
        Ledger("ledger.db", name)


def test_sqlite_syncs_to_the_disk(tmp_path):
    engine = database_module.Database(tmp_path / "ledger.db")._engine(create=True)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_server_with_another_default_isolation_reads_what_is_there(postgres_url):
    """Under REPEATABLE READ, a charge that waited for its lock would not see the one that it waited for."""
    ledger = Ledger(postgres_url + "&options=-c%20default_transaction_isolation%3Dserializable", "trial")
    ledger.grant(GRANT)
    seen = database_module.Database(ledger.url).read(
        lambda connection: connection.exec_driver_sql("SHOW transaction_isolation").scalar()
    )
    assert seen == "read committed"
