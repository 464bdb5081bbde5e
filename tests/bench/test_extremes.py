import numpy as np
import pytest
from typer.testing import CliRunner

import dpcate.bench.extremes as extremes
from dpcate.bench.extremes import KINDS, SPLITS, Configuration, answers, are_sound
from dpcate.cli import app


def test_configurations_reach_as_far_as_they_say():
    drawn = [Configuration.drawn(seed, 50_000, 200) for seed in range(2000)]
    for name, low, high in (("rows", 50, 50_000), ("columns", 1, 200), ("epsilon", 0.01, 50.0)):
        values = np.array([getattr(one, name) for one in drawn])
        assert low <= values.min() <= 1.1 * low
        assert 0.95 * high <= values.max() <= high
    assert {one.split for one in drawn} == set(SPLITS)
    assert min(one.treated for one in drawn) == 0.01
    assert Configuration.drawn(3, 50_000, 200) == drawn[3]


def test_columns_are_of_every_kind():
    x = extremes._columns(np.random.default_rng(1), 400, 60)
    values = [len(np.unique(column)) for column in x.T]
    assert {1, 2, 400} <= set(values)
    assert (x[:, 1:] == x[:, :1]).all(axis=0).any()
    assert ((x >= 0) & (x <= 1)).all()
    assert len(KINDS) == 5


@pytest.mark.parametrize("seed", range(40))
def test_no_divergence_on_random_configurations(seed):
    """Skewed, binary, constant and duplicated columns, a rare arm, tiny and large budgets."""
    assert are_sound(*answers(Configuration.drawn(seed, 5000, 60)))


@pytest.mark.parametrize(
    "wrong", [(np.nan, -1.0, 1.0), (0.0, -np.inf, 1.0), (0.0, -1.0, np.nan), (0.0, 1.0, -1.0), (10.1, 9.0, 11.0)]
)
def test_what_is_not_sound(wrong):
    sound = np.array([[0.0, -1.0, 1.0], [-10.0, -10.0, 10.0]])
    assert are_sound(*sound.T)
    assert not are_sound(*np.vstack([sound, wrong]).T)


FEW = ["bench", "extremes", "--configurations", "2", "--rows", "300", "--columns", "3", "--quiet"]


def test_the_command():
    run = CliRunner().invoke(app, FEW)
    assert run.exit_code == 0
    assert run.output.strip() == "2 of 2 are sound"


def test_the_command_tells_what_is_not_sound(monkeypatch):
    monkeypatch.setattr(extremes, "are_sound", lambda *answered: False)
    run = CliRunner().invoke(app, FEW)
    assert run.exit_code == 1
    first, *others = run.output.strip().splitlines()
    assert first == "0 of 2 are sound"
    assert others == [str(Configuration.drawn(seed, 300, 3)) for seed in range(2)]
