"""The tables of a ledger, as a list of steps that is only ever added to.

Step i takes a database from version i to version i + 1. A step is a template for both databases; what differs
between them stands in `_WORDS`. Rows are only ever inserted: the databases themselves refuse to change, remove
or replace one.
"""

from datetime import UTC, datetime

from sqlalchemy import Connection, inspect, text

from dpcate.errors import LedgerError

_WORDS = {
    "sqlite": {"number": "INTEGER PRIMARY KEY AUTOINCREMENT"},
    "postgresql": {"number": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"},
}

_TABLES = [
    """CREATE TABLE dpcate_versions (version INTEGER PRIMARY KEY, made_at TEXT NOT NULL)""",
    """CREATE TABLE dpcate_grants (
        id {number},
        dataset TEXT NOT NULL,
        granted_at TEXT NOT NULL,
        epsilon DOUBLE PRECISION NOT NULL CHECK (epsilon > 0),
        delta DOUBLE PRECISION NOT NULL CHECK (delta > 0 AND delta < 1),
        neighbours TEXT NOT NULL,
        person TEXT,
        mu DOUBLE PRECISION NOT NULL CHECK (mu >= 0),
        declared_epsilon DOUBLE PRECISION NOT NULL CHECK (declared_epsilon >= 0),
        declared_delta DOUBLE PRECISION NOT NULL CHECK (declared_delta >= 0))""",
    """CREATE TABLE dpcate_charges (
        id {number},
        dataset TEXT NOT NULL,
        charged_at TEXT NOT NULL,
        epsilon DOUBLE PRECISION NOT NULL CHECK (epsilon > 0),
        delta DOUBLE PRECISION NOT NULL CHECK (delta > 0 AND delta < 1),
        mu DOUBLE PRECISION CHECK (mu > 0))""",
    """CREATE TABLE dpcate_releases (
        charge BIGINT NOT NULL PRIMARY KEY REFERENCES dpcate_charges (id),
        recorded_at TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        details TEXT NOT NULL)""",
    "CREATE INDEX dpcate_grants_of ON dpcate_grants (dataset)",
    "CREATE INDEX dpcate_charges_of ON dpcate_charges (dataset)",
]

_KEYS = {"dpcate_grants": "id", "dpcate_charges": "id", "dpcate_releases": "charge"}


def _guards_sqlite() -> list[str]:
    """REPLACE removes a row without asking the DELETE trigger, so an INSERT over an existing key is refused too."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    changes = [
        f"CREATE TRIGGER {table}_keeps_{action} BEFORE {action} ON {table} {refuse}"
        for table in _KEYS
        for action in ("UPDATE", "DELETE")
    ]
    taken = "SELECT 1 FROM {table} WHERE {key} = NEW.{key}"
    replacements = [
        f"CREATE TRIGGER {table}_keeps_REPLACE BEFORE INSERT ON {table} "
        f"WHEN EXISTS ({taken.format(table=table, key=key)}) {refuse}"
        for table, key in _KEYS.items()
    ]
    return changes + replacements


def _guards_postgresql() -> list[str]:
    refuse = """CREATE FUNCTION dpcate_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"""
    when = "BEFORE UPDATE OR DELETE OR TRUNCATE"
    return [refuse] + [
        f"CREATE TRIGGER {table}_keeps {when} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION dpcate_refuse()"
        for table in _KEYS
    ]


_GUARDS = {"sqlite": _guards_sqlite, "postgresql": _guards_postgresql}


def _first(connection: Connection) -> None:
    dialect = connection.dialect.name
    for statement in _TABLES:
        connection.exec_driver_sql(statement.format(**_WORDS[dialect]))
    for statement in _GUARDS[dialect]():
        connection.exec_driver_sql(statement)


STEPS = [_first]


def now() -> str:
    """The time as it stands in every table: UTC, sortable."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def version_of(connection: Connection) -> int:
    """How many steps the database has taken; 0 if it holds no ledger."""
    if not inspect(connection).has_table("dpcate_versions"):
        return 0
    version = int(connection.execute(text("SELECT MAX(version) FROM dpcate_versions")).scalar_one())
    if version > len(STEPS):
        raise LedgerError("the ledger was made by a newer dpcate; upgrade this one")
    return version


def migrate(connection: Connection) -> None:
    """Take the missing steps; the caller holds the lock and commits all of them or none."""
    for version in range(version_of(connection), len(STEPS)):
        STEPS[version](connection)
        statement = text("INSERT INTO dpcate_versions (version, made_at) VALUES (:version, :now)")
        connection.execute(statement, {"version": version + 1, "now": now()})
