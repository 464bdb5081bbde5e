import numpy as np
import pytest
from scipy.integrate import quad
from typer.testing import CliRunner

from dpcate import datasets
from dpcate.bench.average import POPULATION, cover, oracle_sd
from dpcate.cli import app


def test_the_populations_average_is_the_effects_integral():
    assert quad(lambda x: np.exp(2 * x) + 3 * np.sin(4 * x), 0, 1)[0] == pytest.approx(POPULATION, rel=1e-12)


def test_the_oracle_is_unbiased_with_its_sd():
    """Over repeated data, means of its scores scatter as it says: 400 of them tell an sd to 20% but for one in 1e8."""
    errors, sds = [], []
    for seed in range(400):
        data = datasets.synthetic(1, 500, seed=seed)
        treated = data.tau + data.outcome_control + (data.Y - data.outcome_treated) * data.T / data.propensity
        control = data.outcome_control + (data.Y - data.outcome_control) * (1 - data.T) / (1 - data.propensity)
        errors.append(np.mean(treated - control) - POPULATION)
        sds.append(oracle_sd(data))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.mean(sds), rel=0.2)
    assert abs(np.mean(errors)) < 6 * np.mean(sds) / 20


def test_more_budget_makes_the_interval_narrower_down_to_what_no_privacy_allows():
    some, much = cover(range(3), (0.5, 20.0), lambda text, done: None)
    assert some.width > 2 * much.width > much.oracle_width
    assert 0.1 < much.oracle_width < 0.14
    assert {some.coverage, much.coverage} <= {0.0, 1 / 3, 2 / 3, 1.0}


def test_the_command():
    run = CliRunner().invoke(app, ["bench", "average", "--seeds", "1", "--quiet"])
    assert run.exit_code == 0
    lines = run.output.strip().splitlines()
    assert lines[0] == "epsilon,coverage,width,oracle_width"
    assert [line.split(",")[0] for line in lines[1:]] == ["0.5", "1", "5"]
