"""The runner: nothing is run twice, a kill costs what was under way, and a failure is a result with a reason."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dpcate.bench.run import FAILED, Job, Kept, run_jobs
from dpcate.errors import InputError


def quiet(label, done):
    pass


def square(number, log):
    with Path(log).open("a") as file:
        file.write(f"{number}\n")
    return {"square": number**2}


def slow_square(number, log):
    time.sleep(0.5)
    return square(number, log)


def refused(number):
    raise InputError("numbers must be small")


def broken(number):
    raise ValueError("a cell says 17")


def vanishing(number):
    os._exit(1)


def squares(log, work=square, count=6):
    return [Job({"number": n, "version": 1}, work, {"number": n, "log": str(log)}) for n in range(count)]


def test_results_come_in_order_and_are_kept(tmp_path):
    seen = []
    jobs = squares(tmp_path / "log")
    kept = tmp_path / "kept.jsonl"
    results = run_jobs(jobs, Kept(kept), workers=2, progress=lambda label, done: seen.append(done))
    assert [result["square"] for result in results] == [0, 1, 4, 9, 16, 25]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert sorted(json.loads(line)["key"]["number"] for line in kept.read_text().splitlines()) == list(range(6))
    assert run_jobs(jobs, Kept(kept), workers=2, progress=quiet) == results
    assert len((tmp_path / "log").read_text().split()) == 6


def test_another_version_is_run_again(tmp_path):
    (job, *_) = squares(tmp_path / "log")
    run_jobs([job], Kept(tmp_path / "kept.jsonl"), workers=1, progress=quiet)
    newer = Job({**job.key, "version": 2}, job.work, job.arguments)
    run_jobs([newer], Kept(tmp_path / "kept.jsonl"), workers=1, progress=quiet)
    assert len((tmp_path / "log").read_text().split()) == 2


def test_a_killed_bench_goes_on_where_it_was(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_run import *\n"
        "if __name__ == '__main__':\n"
        "    jobs = squares(sys.argv[2] + '/log', slow_square)\n"
        "    run_jobs(jobs, Kept(Path(sys.argv[2]) / 'kept.jsonl'), workers=1, progress=quiet)\n"
    )
    (tmp_path / "bench.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "bench.py", Path(__file__).parent, tmp_path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    kept = tmp_path / "kept.jsonl"
    deadline = time.monotonic() + 120
    while not (kept.exists() and kept.read_text().count("\n") >= 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with kept.open("a") as file:
        file.write('{"key": {"number": 5, "ver')  # a line cut short
    before = [json.loads(line)["key"]["number"] for line in kept.read_text().splitlines()[:-1]]
    assert 2 <= len(before) < 6

    again = tmp_path / "again"
    results = run_jobs(squares(again), Kept(kept), workers=1, progress=quiet)
    assert [result["square"] for result in results] == [0, 1, 4, 9, 16, 25]
    assert sorted(map(int, again.read_text().split())) == sorted(set(range(6)) - set(before))
    assert run_jobs(squares(again), Kept(kept), workers=1, progress=quiet) == results


def test_a_failure_is_kept_with_its_reason_and_the_next_job_runs(tmp_path):
    works = [refused, broken, vanishing]
    jobs = [Job({"work": work.__name__}, work, {"number": 1}) for work in works]
    jobs += squares(tmp_path / "log", count=1)
    results = run_jobs(jobs, Kept(tmp_path / "kept.jsonl"), workers=1, progress=quiet)
    assert results[0] == {FAILED: "numbers must be small"}
    assert results[1] == {FAILED: "it stopped with ValueError"}  # foreign text could hold rows
    assert "ended from outside" in results[2][FAILED]
    assert results[3] == {"square": 0}
