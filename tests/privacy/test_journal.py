"""The journal under crashes. Guarantee 5: no answered question ever gets a second answer."""

import itertools
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from dpcate.errors import MechanismError, ReleaseError
from dpcate.models.kernels import gram
from dpcate.privacy import journal as journal_module
from dpcate.privacy.journal import Journal
from dpcate.privacy.noise import SeededNoise
from dpcate.privacy.path import NoisePath

pytestmark = pytest.mark.fork

SETTINGS = {"width": 2, "settings": "gaussian 0.4 2.5"}
POINTS = np.random.default_rng(0).random((6, 2))


def create(file, batches=((0, 1), (1, 3), (3, 6))):
    """Three records of one, two and three pairs; where each of them ends."""
    journal = Journal(file, create=True, **SETTINGS)
    ends = [file.stat().st_size]
    for start, stop in batches:
        journal.append(POINTS[start:stop], np.arange(start, stop) + 0.5)
        ends.append(file.stat().st_size)
    journal.close()
    return ends


def reopened(file, **changes):
    journal = Journal(file, **{**SETTINGS, **changes})
    journal.close()
    return journal


def path(file, seed, create=False):
    journal = Journal(file, create=create, **SETTINGS)
    return NoisePath(lambda A, B: gram("gaussian", 0.4, A, B), sd=2.5, noise=SeededNoise(seed), journal=journal)


def test_pairs_come_back_as_they_were(tmp_path):
    create(tmp_path / "j")
    journal = reopened(tmp_path / "j")
    assert np.array_equal(journal.points, POINTS)
    assert np.array_equal(journal.values, np.arange(6) + 0.5)


def test_only_the_owner_may_read_it(tmp_path):
    create(tmp_path / "j")
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_a_torn_last_record_is_dropped_at_any_byte(tmp_path):
    file = tmp_path / "j"
    ends = create(file)
    content = file.read_bytes()
    for length in range(ends[0], len(content) + 1):
        file.write_bytes(content[:length])
        whole = sum(end <= length for end in ends[1:])
        assert len(reopened(file).values) == [0, 1, 3, 6][whole]
        assert file.stat().st_size == ends[whole]


def test_writing_goes_on_after_a_torn_record(tmp_path):
    file = tmp_path / "j"
    create(file)
    file.write_bytes(file.read_bytes()[:-5])
    journal = Journal(file, **SETTINGS)
    journal.append(POINTS[3:4], np.array([9.0]))
    journal.close()
    assert reopened(file).values.tolist() == [0.5, 1.5, 2.5, 9.0]


def test_a_changed_byte_anywhere_is_refused(tmp_path):
    file = tmp_path / "j"
    create(file)
    content = file.read_bytes()
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 0x40
        file.write_bytes(changed)
        with pytest.raises(ReleaseError) as refused:
            reopened(file)
        assert "\n" not in str(refused.value)
        assert file.read_bytes() == changed


def test_missing_and_exchanged_records_are_refused(tmp_path):
    file = tmp_path / "j"
    a, b, c, d = create(file, batches=((0, 1), (1, 2), (2, 3)))
    content = file.read_bytes()
    for order in (((b, c), (a, b), (c, d)), ((a, b), (c, d)), ((a, b), (a, b))):
        file.write_bytes(content[:a] + b"".join(content[start:stop] for start, stop in order))
        with pytest.raises(ReleaseError, match="damaged"):
            reopened(file)


@pytest.mark.parametrize("content", [b"", b"dpcate-u", b"something else altogether" * 5])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(ReleaseError, match="not a noise journal"):
        reopened(tmp_path / "j")


@pytest.mark.parametrize("changes", [{"settings": "gaussian 0.4 2.6"}, {"width": 3}])
def test_other_settings_are_refused(tmp_path, changes):
    create(tmp_path / "j")
    with pytest.raises(ReleaseError, match="other settings"):
        reopened(tmp_path / "j", **changes)


def test_neither_a_missing_journal_nor_an_existing_one_is_replaced(tmp_path):
    with pytest.raises(ReleaseError, match="cannot be opened"):
        reopened(tmp_path / "j")
    create(tmp_path / "j")
    with pytest.raises(ReleaseError, match="cannot be created"):
        Journal(tmp_path / "j", create=True, **SETTINGS)


def test_two_writers_are_refused(tmp_path):
    create(tmp_path / "j")
    first = Journal(tmp_path / "j", **SETTINGS)
    with pytest.raises(ReleaseError, match="another writer"):
        Journal(tmp_path / "j", **SETTINGS)
    assert refused_in_child(lambda: Journal(tmp_path / "j", **SETTINGS))
    assert refused_in_child(lambda: first.append(POINTS, np.zeros(6)))
    first.close()
    reopened(tmp_path / "j")


def test_a_closed_or_failed_journal_takes_nothing(tmp_path, monkeypatch):
    create(tmp_path / "j")
    journal = Journal(tmp_path / "j", **SETTINGS)

    def full(file):
        raise OSError("no space left")

    monkeypatch.setattr(journal_module, "os", stand_in(fsync=full))
    with pytest.raises(OSError, match="no space"):
        journal.append(POINTS[:1], np.zeros(1))
    monkeypatch.undo()
    with pytest.raises(ReleaseError, match="open it again"):
        journal.append(POINTS[:1], np.zeros(1))
    journal.close()


def test_two_values_for_one_point_are_refused(tmp_path):
    journal = Journal(tmp_path / "j", create=True, **SETTINGS)
    journal.append(POINTS[[0, 0]], np.array([1.0, 2.0]))
    journal.close()
    with pytest.raises(MechanismError, match="two values"):
        path(tmp_path / "j", seed=0)


def test_answers_are_bit_identical_across_restarts(tmp_path):
    points = np.random.default_rng(1).random((700, 2))
    first = path(tmp_path / "j", seed=0, create=True)
    answers = np.concatenate([first.at(points[:600]), *(first.at(point[None]) for point in points[600:])])
    first.close()
    for seed in (1, 2):
        again = path(tmp_path / "j", seed=seed)
        assert np.array_equal(again.at(points[::-1])[::-1], answers)
        again.close()


def test_a_restored_path_goes_on_as_the_old_one_would(tmp_path):
    """The same next standard normals give the same next values: the past was restored, not only looked up."""
    points = np.random.default_rng(2).random((100, 2))
    first = path(tmp_path / "j", seed=0, create=True)
    first.at(points[:80])
    first._noise = SeededNoise(5)
    ahead = in_child_with_result(lambda: forked(first).at(points[80:]), tmp_path / "ahead")
    first.close()
    again = path(tmp_path / "j", seed=5)
    assert np.allclose(again.at(points[80:]), ahead, atol=1e-6)


# Crashes.


def stand_in(**functions):
    """The os module with some functions exchanged, as the journal sees it."""
    return SimpleNamespace(**{**vars(os), **functions})


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def crashing_os(at, write_part):
    """Dies at the at-th call: after a part of what a write had to write, or before or after what an fsync does."""
    calls = itertools.count()

    def write(file, content):
        if next(calls) == at:
            os.write(file, content[: int(len(content) * write_part)])
            die()
        return os.write(file, content)

    def fsync(file):
        if next(calls) == at:
            if write_part:
                os.fsync(file)
            die()
        os.fsync(file)

    return stand_in(write=write, fsync=fsync)


def in_child(action):
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused_in_child(action):
    def expect_refusal():
        with pytest.raises(ReleaseError):
            action()

    return in_child(expect_refusal) == 0


def forked(path):
    """Make a path believe that it has not been forked, without its journal."""
    path._process, path._journal = os.getpid(), None
    return path


def in_child_with_result(action, file):
    assert in_child(lambda: file.write_bytes(action().tobytes())) == 0
    return np.frombuffer(file.read_bytes())


def answer_all(file, answered, points, seed, pause=0.0):
    """Ask singly and in pairs; note each answer as soon as it is there, as a reader would."""
    asked = path(file, seed)
    with open(answered, "ab", buffering=0) as notes:
        for group in np.split(points, range(1, len(points), 2)):
            answers = asked.at(group)
            notes.write(np.column_stack([group, answers]).tobytes())
            time.sleep(pause)


def notes_of(answered):
    content = answered.read_bytes() if answered.exists() else b""
    return np.frombuffer(content[: len(content) // 24 * 24]).reshape(-1, 3)


def assert_one_answer_each(answered):
    answers = {}
    for *point, answer in notes_of(answered):
        assert answers.setdefault(tuple(point), answer) == answer
    return len(answers)


@pytest.mark.parametrize("write_part", [0.0, 0.5, 1.0])
def test_killed_between_every_pair_of_writes(tmp_path, monkeypatch, write_part):
    """A crash at the 1st, 2nd, 3rd … call in turn, then a fresh process with fresh noise asks everything."""
    points = np.random.default_rng(3).random((9, 2))
    for at in itertools.count():
        file, answered = tmp_path / f"j{at}", tmp_path / f"a{at}"
        Journal(file, create=True, **SETTINGS).close()

        def crash(at=at, file=file, answered=answered):
            monkeypatch.setattr(journal_module, "os", crashing_os(at, write_part))
            answer_all(file, answered, points, seed=at)

        ended = in_child(crash)
        assert ended in (0, -signal.SIGKILL)
        before = len(notes_of(answered))
        assert in_child(lambda file=file, answered=answered: answer_all(file, answered, points, seed=1000)) == 0
        assert len(notes_of(answered)) == before + len(points)
        assert assert_one_answer_each(answered) == len(points)
        if ended == 0:
            break
    assert at == 10  # five answers, a write and an fsync each


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("write_part", [0.0, 0.5, 1.0])
def test_killed_while_a_journal_is_made(tmp_path, monkeypatch, at, write_part):
    """Nothing was answered yet: it is whole and empty, or refused."""

    def crash():
        monkeypatch.setattr(journal_module, "os", crashing_os(at, write_part))
        Journal(tmp_path / "j", create=True, **SETTINGS)

    assert in_child(crash) == -signal.SIGKILL
    try:
        assert len(reopened(tmp_path / "j").values) == 0
    except ReleaseError as refused:
        assert "not a noise journal" in str(refused)


def test_killed_at_random_moments_again_and_again(tmp_path):
    """Twelve lives of one state, each ended by kill -9 at some moment; all lives ask the same points."""
    file, answered = tmp_path / "j", tmp_path / "a"
    Journal(file, create=True, **SETTINGS).close()
    rng = np.random.default_rng(4)
    points = rng.random((400, 2))
    for life in range(12):
        child = os.fork()
        if child == 0:
            answer_all(file, answered, points[: 40 * (life + 1)][::-1], seed=life, pause=1e-4)
            os._exit(0)
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert in_child(lambda: answer_all(file, answered, points, seed=99)) == 0
    assert assert_one_answer_each(answered) >= len(points)
