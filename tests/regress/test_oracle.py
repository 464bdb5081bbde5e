"""The curator's state on disk. Guarantee 5, for whole answers: bit-identical across restarts and crashes."""

import copy
import itertools
import os
import pickle
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from dpcate.errors import InputError, MechanismError, ReleaseError
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source
from dpcate.privacy import journal as journal_module
from dpcate.regress import oracle as oracle_module
from dpcate.regress.kernel import Kernel
from dpcate.regress.oracle import FUNCTION, NOISE, KernelOracle
from dpcate.regress.problem import Problem

pytestmark = pytest.mark.fork

X = np.random.default_rng(9).random((30, 2))


def fitted(seed=0):
    rng = np.random.default_rng(0)
    x, w = rng.random((80, 2)), rng.choice([-0.5, 0.5], size=80)
    rows = Problem(
        x=x, rho=w * w, rho_phi=w * rng.uniform(-1, 1, 80), reference=rng.random((64, 2)), n=80, span=10.0,
        curvature=0.25, multiplier=0.5, two_valued=False, neighbours="replace-one", rows_per_person=1, part=None,
    )  # fmt: skip
    budget = Budget(epsilon=1.0, delta=1e-6)
    return Kernel(points=16).fit_oracle(rows, Mechanisms(Accountant(budget), noise_source(seed)), budget.mu, "test")


def test_an_answer_does_not_depend_on_its_company():
    asked = fitted()
    together = asked.effect(X)
    assert np.array_equal(np.concatenate([asked.effect(x[None]) for x in X[::-1]])[::-1], together)


def test_answers_are_bit_identical_across_restarts(tmp_path):
    asked = fitted()
    before = asked.effect(X[:10])
    asked.save(tmp_path / "state")
    after = np.concatenate([asked.effect(x[None]) for x in X[10:20]])
    asked.close()
    for life in range(2):
        again = KernelOracle.open(tmp_path / "state", random_state=100 + life)
        assert np.array_equal(again.effect(X[:20]), np.concatenate([before, after]))
        assert again.model == asked.model
        again.close()
        with pytest.raises(MechanismError):
            again.effect(X[:1])


def test_the_state_is_for_the_owner_only(tmp_path):
    asked = fitted()
    asked.save(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    for name in (FUNCTION, NOISE):
        assert (tmp_path / "state" / name).stat().st_mode & 0o777 == 0o600


def test_one_state_one_writer(tmp_path):
    asked = fitted()
    asked.save(tmp_path / "state")
    with pytest.raises(InputError, match="saved already"):
        asked.save(tmp_path / "other")
    with pytest.raises(ReleaseError, match="another writer"):
        KernelOracle.open(tmp_path / "state")
    asked.close()
    opened = KernelOracle.open(tmp_path / "state")
    with pytest.raises(InputError, match="saved already"):
        opened.save(tmp_path / "other")
    opened.close()
    with pytest.raises(InputError, match="cannot be made"):
        fitted().save(tmp_path / "state")


def test_noise_of_one_function_never_serves_another(tmp_path):
    """Two functions under the same noise: their difference would be bare."""
    for seed in (0, 1):
        asked = fitted(seed)
        asked.save(tmp_path / f"state{seed}")
        asked.close()
    (tmp_path / "state1" / NOISE).write_bytes((tmp_path / "state0" / NOISE).read_bytes())
    with pytest.raises(ReleaseError, match="other settings"):
        KernelOracle.open(tmp_path / "state1")


def test_damaged_and_missing_states_are_refused(tmp_path):
    asked = fitted()
    asked.save(tmp_path / "state")
    asked.close()
    content = (tmp_path / "state" / FUNCTION).read_bytes()
    for damaged in (b"", content[:100], content[: len(content) // 2]):
        (tmp_path / "state" / FUNCTION).write_bytes(damaged)
        with pytest.raises(ReleaseError):
            KernelOracle.open(tmp_path / "state")
    (tmp_path / "state" / FUNCTION).write_bytes(content)
    (tmp_path / "state" / NOISE).unlink()
    with pytest.raises(ReleaseError, match="cannot be opened"):
        KernelOracle.open(tmp_path / "state")
    with pytest.raises(ReleaseError, match="cannot be read"):
        KernelOracle.open(tmp_path / "nowhere")


def test_a_seed_is_remembered(tmp_path):
    asked = fitted()
    assert not asked.private
    asked.save(tmp_path / "state")
    asked.close()
    assert not KernelOracle.open(tmp_path / "state").private


def test_an_oracle_is_sealed():
    asked = fitted()
    assert repr(asked) == "<KernelOracle: sealed>"
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InputError):
            attempt(asked)


@pytest.mark.parametrize("x", [[0.1, 0.2], [[0.1]], [[np.nan, 0.1]]])
def test_bad_points_are_refused(x):
    with pytest.raises(InputError):
        fitted().effect(x)


def test_killed_at_every_write_while_saving_and_answering(tmp_path, monkeypatch):
    """Save, then answer one by one, killed at the 1st, 2nd, … write, fsync or rename of all of it."""

    def crash(at, folder, answered):
        calls = itertools.count()

        def dying(function):
            def call(*arguments):
                if next(calls) == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)

            return call

        stand_in = SimpleNamespace(**{**vars(os), **{f: dying(getattr(os, f)) for f in ("write", "fsync", "replace")}})
        monkeypatch.setattr(journal_module, "os", stand_in)
        monkeypatch.setattr(oracle_module, "os", stand_in)
        asked = fitted(at)
        asked.save(folder)
        for x in X[:3]:
            answered.write_bytes(answered.read_bytes() + asked.effect(x[None]).tobytes())

    opened = []
    for at in itertools.count():
        folder, answered = tmp_path / f"state{at}", tmp_path / f"answers{at}"
        answered.write_bytes(b"")
        child = os.fork()
        if child == 0:
            crash(at, folder, answered)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL)
        given = np.frombuffer(answered.read_bytes())
        try:
            again = KernelOracle.open(folder, random_state=1000)
        except ReleaseError:
            assert given.size == 0
            opened.append(False)
        else:
            assert np.array_equal(again.effect(X[:3])[: len(given)], given)
            again.close()
            opened.append(True)
        if ended == 0:
            break
    assert opened == sorted(opened)
    assert len(given) == 3
