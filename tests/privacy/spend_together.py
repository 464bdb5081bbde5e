"""Processes that try to charge one dataset at the same moment: what each was told, one JSON line per process.

Usage: spend_together.py URL DATASET PROCESSES. Run as a program of its own: it forks.
"""

import json
import os
import sys

from dpcate.errors import DpcateError
from dpcate.privacy import Budget, Ledger, Request

DELTA = 1e-6
SIZES = (0.1, 0.2, 0.4)


def attempt(url, dataset, process):
    epsilon = SIZES[process % len(SIZES)]
    request = Request(budget=Budget(epsilon=epsilon, delta=DELTA), gaussian=True)
    try:
        return {"epsilon": epsilon, "paid": Ledger(url, dataset).charge(request)}
    except DpcateError as error:
        return {"epsilon": epsilon, "refused": str(error), "exit_code": error.exit_code}


def main(url, dataset, processes):
    Ledger(url, dataset).account()  # loads the driver once, for everybody
    gate, opens = os.pipe()
    answers, answer = os.pipe()
    for process in range(processes):
        if os.fork() == 0:
            os.close(opens)
            os.read(gate, 1)
            os.write(answer, json.dumps(attempt(url, dataset, process)).encode() + b"\n")
            os._exit(0)
    os.close(opens)
    os.close(answer)
    while content := os.read(answers, 1 << 16):
        sys.stdout.buffer.write(content)
    for _ in range(processes):
        os.wait()


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
