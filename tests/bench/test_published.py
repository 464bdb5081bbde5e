import numpy as np
import pytest
from typer.testing import CliRunner

from dpcate.bench.published import ASKED, SOURCES, measure, step_trial
from dpcate.cli import app
from dpcate.errors import InputError


@pytest.mark.parametrize("width", [2, 10])
def test_a_step_effect_has_its_four_values(width):
    trial = step_trial(width, 4)
    assert sorted(set(trial.tau)) == [0.0, 1.0, 2.0, 3.0]
    assert trial.points.shape == (ASKED, width)
    assert len(trial.Y) == 3000
    assert trial.schema.outcome.low < trial.Y.min()
    assert trial.Y.max() < trial.schema.outcome.high


def test_cells_are_means_over_seeds():
    told = []

    def cell(seeds):
        (only,) = measure(seeds, ["synthetic 1, 3000"], [5.0], lambda text, done: told.append((text, done)))
        return only

    both, first, second = cell(range(2)), cell(range(1)), cell(range(1, 2))
    assert told == [("synthetic 1, 3000 at ε = 5", 0.0)] * 3
    assert both.error == pytest.approx((first.error + second.error) / 2)
    assert both.coverage == pytest.approx((first.coverage + second.coverage) / 2)
    assert both.width * both.error == pytest.approx((first.width * first.error + second.width * second.error) / 2)
    assert both.error < 0.1 < 1.0 < both.constant


@pytest.mark.peers
def test_rows_of_acic16_are_held_out_by_the_seed():
    first, second = (SOURCES["ACIC16 4"](seed) for seed in (0, 1))
    assert len(first.Y) + len(first.points) == 4802
    assert not np.array_equal(first.tau, second.tau)


def test_the_command_prints_a_line_per_budget_and_refuses_what_it_does_not_know():
    run = CliRunner().invoke(app, ["bench", "published", "--seeds", "1", "--only", "steps, 2 columns", "--quiet"])
    assert run.exit_code == 0
    lines = run.output.strip().splitlines()
    assert lines[0] == "data,epsilon,error,best_constant,coverage,width_over_error"
    assert [line.split('",')[1].split(",")[0] for line in lines[1:]] == ["0.1", "0.5", "1", "5", "10"]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["published", "--only", "IHDP"], "no data 'IHDP'; there are 'synthetic 1, 3000', "),
        (["moments", "--clinic", "--held-out"], "are different trials: ask for one"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked, answer):
    refused = CliRunner().invoke(app, ["bench", *asked])
    assert isinstance(refused.exception, InputError)
    assert answer in str(refused.exception)
