"""The paper's experiments: both calibrations drawn and labelled, stand-ins that say so, users' files in their place."""

import csv

import numpy as np
import pytest

from dpcate import datasets
from dpcate.bench.encoded import encoded
from dpcate.bench.paper import experiments, results
from dpcate.bench.paper.experiments import EPSILONS, EXPERIMENTS, OURS, PRINTED, jobs, run
from dpcate.bench.paper.sources import QUERIES, UserFiles, questions
from dpcate.bench.printed import AtQueries, SecondHalf, printed
from dpcate.errors import DataError, InputError
from dpcate.paper import PaperKernel, PaperNetwork

NO_FILES = UserFiles()


def test_the_plan_is_the_paper_s():
    assert EPSILONS == (0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
    assert len(questions("dataset1", 0, NO_FILES, quick=False).points) == QUERIES == 300
    keys = [job.key for job in jobs(False, NO_FILES)]
    runs = [key for key in keys if key["experiment"] == "dataset2-pehe" and key["calibration"] == PRINTED]
    assert sorted({key["method"] for key in runs}) == ["functional", "kernel", "network"]
    assert len({key["seed"] for key in runs}) == 10
    assert {key["experiment"] for key in keys} == {experiment.name for experiment in EXPERIMENTS}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Two experiments of the quick version."""
    folder, patch = tmp_path_factory.mktemp("paper"), pytest.MonkeyPatch()
    chosen = tuple(experiment for experiment in EXPERIMENTS if experiment.name in ("dataset1-functional", "mimic"))
    for module in (experiments, results):
        patch.setattr(module, "EXPERIMENTS", chosen)
    results.redraw(folder, quick=True, files=NO_FILES, workers=2, progress=lambda label, done: None)
    patch.undo()
    return folder


def test_every_figure_stands_there_twice(drawn):
    names = {path.name for path in drawn.iterdir()}
    expected = {
        f"{name}-{calibration}.{end}"
        for name in ("dataset1-functional", "mimic")
        for calibration in (PRINTED, OURS)
        for end in ("png", "svg", "csv")
    }
    assert names == expected | {"paper.html", "paper.jsonl"}
    page = (drawn / "paper.html").read_text()
    assert page.count("<img") == 4
    assert page.count('class="warning">NOT PRIVATE') == 2
    assert page.count("GENERATED STAND-IN") >= 2
    assert "://" not in page
    for word in ("0.1, 1, 10", "scikit-learn", "1e-05"):
        assert word in page


def test_the_numbers_of_a_figure_are_beside_it(drawn):
    rows = list(csv.DictReader((drawn / "dataset1-functional-ours.csv").read_text().splitlines()))
    assert len(rows) == 2 * 3 * 80
    assert all(all(row.values()) for row in rows)


def test_the_labels_say_what_is_private_and_what_is_drawn():
    mimic = next(experiment for experiment in EXPERIMENTS if experiment.name == "mimic")
    stand_in = results._labels(mimic, PRINTED, NO_FILES)
    assert "NOT PRIVATE" in stand_in.warning
    assert "GENERATED STAND-IN" in stand_in.title
    of_user = results._labels(mimic, OURS, UserFiles(mimic="all_hourly_data.h5"))
    assert not of_user.warning
    assert "GENERATED" not in of_user.title
    assert "composes" in of_user.title


def test_a_user_s_genes_take_the_stand_in_s_place(tmp_path):
    genes = [f"gene{number}" for number in range(120)]
    expression = np.random.default_rng(0).uniform(0, 16, (200, 120))
    np.savez(tmp_path / "tcga.npz", expression=expression, genes=np.array(genes))
    (tmp_path / "genes.txt").write_text("\n".join(genes))
    files = UserFiles(tcga=tmp_path / "tcga.npz", genes=tmp_path / "genes.txt")
    for calibration, method in ((PRINTED, "kernel"), (OURS, "features")):
        done = run("tcga", calibration, method, 0, True, files)
        assert len(done["x"]) == QUERIES
        assert np.isfinite(done["effects"]["10"]).all()
    with pytest.raises(InputError, match="public list"):
        UserFiles(tcga=tmp_path / "tcga.npz")


def test_the_queries_side_of_the_influence_is_solved_once():
    asked = questions("dataset1", 0, NO_FILES, quick=True)
    half = SecondHalf.of(asked.train, "r", 0)
    queries, z = encoded(asked.train.schema, asked.points), half.problem.x[:7]
    for stage in (PaperKernel(), PaperNetwork(hidden=(4,))):
        fitted = stage.fit(half.problem)
        expected = fitted.inverse_at(queries, z)
        assert np.allclose(AtQueries(fitted, queries).inverse_at(queries, z), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("kind", "learner"), [("kernel", "r"), ("kernel", "dr"), ("functional", "r")])
def test_as_printed_noise_falls_with_the_budget(kind, learner):
    """The same draw of noise: 1/ε of it, on top of the learner without noise."""
    asked = questions("dataset1", 0, NO_FILES, quick=True)
    release = printed(kind, asked.train, asked.points, 0, learner)
    one, ten, hundred = (release.effect(epsilon, 1e-5, 0) for epsilon in (1.0, 10.0, 100.0))
    assert np.allclose((one - hundred) / 0.99, (ten - hundred) / 0.09, rtol=1e-6)
    if kind == "kernel":
        assert np.allclose(one - release.original, 10 * (ten - release.original), rtol=1e-6)


def test_too_many_rows_for_a_matrix_of_all_pairs_are_refused():
    data = datasets.synthetic(1, 12_500, seed=0)
    with pytest.raises(DataError, match="more than 6,000 rows"):
        printed("kernel", data, data.X[:5], 0)
