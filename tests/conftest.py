"""Tests must not pass or fail by chance: hypothesis draws the same examples every time. A server, a browser."""

import glob
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")


def server_program(name):
    found = shutil.which(name)
    return found or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


def as_server(*command):
    """The server refuses to run as root, so root runs it as its own user."""
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*prefix, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


@pytest.fixture(scope="session")
def postgres_server():
    """The folder with the socket of a server that listens nowhere else, as packaged but for that."""
    initdb, pg_ctl = server_program("initdb"), server_program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("no PostgreSQL server is installed (initdb and pg_ctl): the ledger was tested on SQLite only")
    if os.geteuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip(
            "PostgreSQL does not run as root and there is no user postgres: the ledger was tested on SQLite only"
        )
    folder = Path(tempfile.mkdtemp(prefix="dpcate-postgres-"))
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
    data = str(folder / "data")
    try:
        as_server(initdb, "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses='' -k {folder}"
        as_server(pg_ctl, "-D", data, "-l", str(folder / "log"), "-o", options, "-w", "start")
        yield folder
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            as_server(pg_ctl, "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def browser():
    """A Chromium that asks for nothing by itself."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium on the path: pages were not tried in a browser")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=flags)
        yield started
        started.close()


_databases = itertools.count()


@pytest.fixture
def postgres_url(postgres_server):
    """A new, empty database."""
    import psycopg

    name = f"ledger{next(_databases)}"
    with psycopg.connect(f"host={postgres_server} user=postgres dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://postgres@/{name}?host={postgres_server}"


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request, tmp_path):
    """Where a ledger may be made, on either kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("postgres_url")
