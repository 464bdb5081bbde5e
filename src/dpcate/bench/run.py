"""Many independent runs, in processes of their own, kept as one JSON line each: what is kept is not run again.

A worker that dies (memory) or takes too long costs its one run, which is kept with the reason. A line that a kill cut
short is ignored and run again. Every worker computes on one thread, so that seconds mean the same in all of them.
"""

import json
import math
import multiprocessing
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcate.errors import DpcateError

LONGEST_RUN = 3600.0  # seconds
FAILED = "failed"

Result = dict[str, Any]
NOT_RUN: Result = {}
Progress = Callable[[str, float], None]

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Job:
    """`work(**arguments)` is a module's function, its result JSON; `key` names it among all runs ever kept."""

    key: Mapping[str, Any]
    work: Callable[..., Result]
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        return json.dumps(self.key, sort_keys=True)

    @property
    def label(self) -> str:
        """For people."""
        return " · ".join(str(value) for value in self.arguments.values() if isinstance(value, str | int | float))


class Kept:
    """Finished runs in a file of JSON lines {"key": …, "result": …}."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._results = {json.dumps(line["key"], sort_keys=True): line["result"] for line in _whole_lines(path)}

    def get(self, job: Job) -> Result | None:
        return self._results.get(job.name)

    def add(self, job: Job, result: Result) -> None:
        """On disk before it counts."""
        line = json.dumps({"key": dict(job.key), "result": result}) + "\n"
        with self._lock, self.path.open("a+") as file:
            file.write(line if _ends_whole(self.path) else "\n" + line)
            file.flush()
            os.fsync(file.fileno())
            self._results[job.name] = result


def run_jobs(
    jobs: Iterable[Job], kept: Kept, *, workers: int, progress: Progress, seconds: float = math.inf
) -> list[Result]:
    """The result of each job, in order; those already kept are not run again, and after `seconds` none is begun.

    One that was not begun has the result NOT_RUN, which is not kept.
    """
    jobs = list(jobs)
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        if kept.get(job) is None:
            waiting.put(job)
    finished: queue.SimpleQueue[Job | BaseException | None] = queue.SimpleQueue()
    left, stop, until = waiting.qsize(), threading.Event(), time.monotonic() + seconds
    progress("running", 1 - left / max(len(jobs), 1))
    crew = [
        threading.Thread(target=_serve, args=(waiting, kept, finished, stop, until), daemon=True)
        for _ in range(min(workers, left) if seconds > 0 else 0)
    ]
    for thread in crew:
        thread.start()
    serving = len(crew)
    try:
        while serving:
            done = finished.get()
            if isinstance(done, BaseException):
                raise done
            if done is None:
                serving -= 1
                continue
            left -= 1
            progress(done.label, 1 - left / len(jobs))
    finally:
        stop.set()
        for thread in crew:
            thread.join()
    return [kept.get(job) or NOT_RUN for job in jobs]


def perform(job: Job) -> Result:
    """The job's result, or why there is none. Foreign errors give their kind only: their text could hold rows."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return job.work(**job.arguments)
    except DpcateError as error:
        return {FAILED: str(error)}
    except Exception as error:
        return {FAILED: f"it stopped with {type(error).__name__}"}


def _serve(
    waiting: queue.SimpleQueue, kept: Kept, finished: queue.SimpleQueue, stop: threading.Event, until: float
) -> None:
    """One worker process, replaced when it dies; takes jobs until none, or no time, is left."""
    worker = _Worker()
    try:
        while not stop.is_set() and time.monotonic() < until:
            job = waiting.get_nowait()
            result = worker.perform(job, stop)
            if result is None:
                return
            kept.add(job, result)
            finished.put(job)
            if not worker.alive:
                worker = _Worker()
    except queue.Empty:
        pass
    except BaseException as error:
        finished.put(error)
    finally:
        finished.put(None)
        worker.end()


class _Worker:
    def __init__(self) -> None:
        for variable in _ONE_THREAD:
            os.environ.setdefault(variable, "1")
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def perform(self, job: Job, stop: threading.Event) -> Result | None:
        """The result; None when the whole bench is being stopped."""
        try:
            self._connection.send(job)
            for _ in range(int(LONGEST_RUN)):
                if self._connection.poll(1.0):
                    return self._connection.recv()
                if stop.is_set():
                    return None
        except (EOFError, OSError):
            self.end()
            return {FAILED: "its process was ended from outside, most likely for want of memory"}
        self.end()
        return {FAILED: f"it took longer than {LONGEST_RUN / 60:.0f} minutes"}

    def end(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.join()


def _work(connection: Any) -> None:
    """In the worker: jobs in, results out, until the other end is gone."""
    try:
        while True:
            connection.send(perform(connection.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        pass


def _whole_lines(path: Path) -> Iterable[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_text(errors="replace").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # cut short by a kill


def _ends_whole(path: Path) -> bool:
    content = path.read_bytes()[-1:]
    return content in (b"", b"\n")
