"""`dpcate fit` killed with -9 at random moments of its run, again and again, each with a release file of its own.

Usage: kill_fits.py TIMES URL DATASET, in a folder with schema.toml and rows.csv. Run as a program of its own: it forks.
Prints how many fits it killed.
"""

import os
import random
import signal
import sys
import time

import dpcate
from dpcate.cli import main


def start(number, url, dataset):
    child = os.fork()
    if child == 0:
        options = {"schema": "schema.toml", "data": "rows.csv", "epsilon": "0.1", "delta": "1e-6"}
        options |= {"ledger": url, "dataset": dataset, "out": f"release-{number}.json"}
        sys.argv = ["dpcate", "fit", "--quiet", *(f"--{name}={value}" for name, value in options.items())]
        try:
            main()
        except SystemExit as end:
            os._exit(end.code or 0)
    return child


def load_everything():
    """A fit without a ledger, so that those that are killed start with the fit and not with imports."""
    schema = dpcate.Schema.load("schema.toml")
    dpcate.PrivateCATE(schema, epsilon=0.1, delta=1e-6).fit(table="rows.csv")


def finish(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_many(times, url, dataset):
    load_everything()
    began = time.monotonic()
    assert finish(start("whole", url, dataset)) == 0
    duration, killed = time.monotonic() - began, 0
    moments = random.Random(6)
    for number in range(times):
        child = start(number, url, dataset)
        time.sleep(moments.uniform(0, 1.2 * duration))
        os.kill(child, signal.SIGKILL)
        killed += finish(child) == -signal.SIGKILL
    return killed


print(kill_many(int(sys.argv[1]), *sys.argv[2:]))
