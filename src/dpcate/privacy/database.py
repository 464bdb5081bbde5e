"""Where a ledger lives: a SQLite file, or a PostgreSQL database by URL. One transaction per piece of work.

Guarantee 7: when `write` returns, its work is on disk, and no other writer under the same lock ran in between;
when it raises or the process dies, nothing of it is there. SQLite: BEGIN IMMEDIATE, synchronous=EXTRA.
PostgreSQL: an advisory lock for the transaction, synchronous_commit=on.
Errors name the place without user and password, and never repeat what the driver says.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpcate.errors import LedgerError
from dpcate.privacy.migrations import STEPS, migrate, version_of

PATIENCE_S = 120.0  # how long to wait for other writers
_CONNECT_S = 10
_CROWDED = ("too many clients", "too many connections", "connection slots")
_WRITTEN = ("append-only", "duplicate key")
_OCCUPIED = ("locked", "lock timeout", "busy")

Result = TypeVar("Result")
Work = Callable[[Connection], Result]


class _OutdatedError(Exception):
    """The tables are of an older version."""


class Database:
    """Opens nothing until there is work. A ledger is made by the first write that may create it."""

    def __init__(self, url: str | Path) -> None:
        self._url = _parsed(url)
        self._file = Path(self._url.database or "") if self._url.drivername == "sqlite" else None
        self.place = self._file.name if self._file else f"{self._url.host or 'local'}/{self._url.database or ''}"

    def read(self, work: Work[Result]) -> Result:
        """Work that changes nothing."""
        return self._current(work, lock=None)

    def write(self, work: Work[Result], *, lock: str, create: bool = False) -> Result:
        """Work that is alone under its lock, and durable when this returns."""
        if create:
            self._run(migrate, lock="", create=True)
        return self._current(work, lock=lock)

    def _current(self, work: Work[Result], lock: str | None) -> Result:
        """Work on the tables of today; older ones are brought up to date first."""

        def checked(connection: Connection) -> Result:
            version = version_of(connection)
            if version == 0:
                raise LedgerError(f"{self._name} holds no grants yet; 'dpcate ledger grant' makes the first")
            if version < len(STEPS):
                raise _OutdatedError
            return work(connection)

        try:
            return self._run(checked, lock=lock)
        except _OutdatedError:
            pass
        self._run(migrate, lock="")
        return self._run(checked, lock=lock)

    def _run(self, work: Work[Result], *, lock: str | None, create: bool = False) -> Result:
        deadline = time.monotonic() + PATIENCE_S
        pauses = _pauses()
        while True:
            try:
                return self._once(work, lock, create)
            except SQLAlchemyError as error:
                problem, again = self._problem(error)
            if not again or time.monotonic() > deadline:
                raise LedgerError(f"{self._name} {problem}")
            time.sleep(next(pauses))

    def _once(self, work: Work[Result], lock: str | None, create: bool) -> Result:
        engine = self._engine(create)
        with engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN" if lock is None else "BEGIN IMMEDIATE")
            elif lock is not None:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE_S:.0f}s'")
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key(lock)})
            result = work(connection)
            connection.commit()
            return result

    def _engine(self, create: bool) -> Engine:
        if self._file is None:
            return _postgres(self._url)
        mode = "rwc" if create else "rw"
        address = f"file:{quote(os.fsencode(self._file.absolute()))}?mode={mode}"
        return create_engine("sqlite://", creator=lambda: _sqlite(address), poolclass=NullPool, hide_parameters=True)

    def _problem(self, error: SQLAlchemyError) -> tuple[str, bool]:
        """What to tell, and whether the server only said that it has no room for one more client now."""
        said = str(error.orig).lower() if isinstance(error, DBAPIError) else ""
        if any(word in said for word in _CROWDED):
            return "has no free connection; try again later", True
        if any(word in said for word in _OCCUPIED):
            return "was in use by other writers for too long; try again later", False
        if any(word in said for word in _WRITTEN):
            return "is append-only: nothing in it can be changed, removed or recorded twice", False
        if self._file is not None and not self._file.is_file():
            return "does not exist or cannot be made; 'dpcate ledger grant' makes one in a folder that exists", False
        if self._file is not None:
            return "cannot be used: it is not a ledger, is damaged, or may not be written here", False
        if isinstance(error, OperationalError) and "read-only" not in said:
            return "cannot be reached; check the server, its port, the database, the user and the password", False
        return "cannot be used: the user may not read or write it, or its tables are not a ledger's", False

    @property
    def _name(self) -> str:
        return f"the ledger {self.place!r}"


def _parsed(url: str | Path) -> URL:
    """A file name, sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/DATABASE."""
    if isinstance(url, Path) or "://" not in url:
        parsed = URL.create("sqlite", database=str(url))
    else:
        parsed = _made(url.replace("postgres://", "postgresql://", 1))
    kind = parsed.get_backend_name()
    if kind == "sqlite" and parsed.database and parsed.database != ":memory:" and "\0" not in parsed.database:
        return URL.create("sqlite", database=parsed.database)
    if kind == "postgresql" and "plugin" not in parsed.query:
        return parsed.set(drivername="postgresql+psycopg")
    raise LedgerError("a ledger is a file name, sqlite:///FILE or postgresql://USER@HOST/DATABASE")


def _made(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        pass
    raise LedgerError("the URL of the ledger cannot be read; write postgresql://USER:PASSWORD@HOST:PORT/DATABASE")


def _sqlite(address: str) -> sqlite3.Connection:
    """EXTRA also syncs the folder when the journal goes, so that a power cut cannot undo a commit."""
    connection = sqlite3.connect(address, uri=True, timeout=PATIENCE_S, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _postgres(url: URL) -> Engine:
    """READ COMMITTED, whatever the server's default: reads after the lock see what was there when it was free."""
    try:
        return create_engine(
            url,
            poolclass=NullPool,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": _CONNECT_S},
        )
    except ImportError:
        pass
    raise LedgerError("a ledger on PostgreSQL needs the extra: pip install 'dpcate[postgres]'")


def _pauses() -> Iterator[float]:
    """Longer and longer, and not the same for everybody, so that a crowd does not come back at once."""
    pause = 0.1 + 0.001 * (os.getpid() % 100)
    while True:
        yield pause
        pause = min(1.5 * pause, 2.0)


def _key(lock: str) -> int:
    return int.from_bytes(blake2b(f"dpcate {lock}".encode(), digest_size=8).digest(), "big", signed=True)
