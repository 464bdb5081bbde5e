"""TCGA expression from generated files: 30 patients, twenty of forty genes wanted."""

import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest

from dpcate import datasets
from dpcate.datasets import tcga
from dpcate.errors import DataError, InputError
from dpcate.schema import Number

NAMES = [f"GENE{j}|{100 + j}" for j in range(40)]
GENES = NAMES[30:10:-1]
VALUES = np.random.default_rng(0).uniform(0, 18, (30, 40)).round(4)


@pytest.fixture(params=["npz", "csv", "parquet"])
def path(request, tmp_path):
    place, frame = tmp_path / f"tcga.{request.param}", pd.DataFrame(VALUES, columns=NAMES)
    if request.param == "npz":
        np.savez_compressed(place, expression=VALUES, genes=np.array(NAMES))
    elif request.param == "csv":
        frame.to_csv(place, index_label="sample")
    else:
        frame.to_parquet(place)
    return place


def test_every_format_gives_the_listed_genes_in_the_lists_order(path, assert_keeps_its_schema, monkeypatch):
    monkeypatch.setattr(tcga, "_AT_ONCE", 7)
    data = datasets.tcga_expression(path, GENES, seed=0)
    assert np.array_equal(data.X, VALUES[:, 30:10:-1])
    assert list(data.schema.covariates) == GENES
    assert_keeps_its_schema(data)


def test_treatment_follows_ten_genes_and_the_effect_is_constant(tmp_path):
    values = np.random.default_rng(1).uniform(0, 20, (20_000, 10))
    np.savez(tmp_path / "large.npz", expression=values, genes=np.array(GENES[:10]))
    data = datasets.tcga_expression(tmp_path / "large.npz", GENES[:10], seed=3)
    drive = values.mean(axis=1) / 20
    assert np.allclose(data.propensity, 0.1 + 0.8 * drive)
    assert np.allclose(data.outcome_control, drive)
    assert (data.tau == 1).all()
    assert abs(data.T.mean() - data.propensity.mean()) < 6 * 0.5 / np.sqrt(20_000)
    residual = data.Y - np.where(data.T == 1, data.outcome_treated, data.outcome_control)
    assert np.abs(residual).max() <= 1


def test_the_outcome_keeps_its_bounds_whatever_the_cells_say(tmp_path):
    values = np.random.default_rng(2).normal(0, 1e6, (500, 10))
    np.savez(tmp_path / "wild.npz", expression=values, genes=np.array(GENES[:10]))
    data = datasets.tcga_expression(tmp_path / "wild.npz", GENES[:10], seed=0, expression=Number(-5, 5))
    assert data.schema.outcome.low <= data.Y.min() <= data.Y.max() <= data.schema.outcome.high
    assert data.schema.covariates[GENES[0]] == Number(-5, 5)


def test_an_unreadable_cell_makes_its_row_absent_and_leaves_the_others(tmp_path):
    frame = pd.DataFrame(VALUES, columns=NAMES).astype(object)
    whole, broken = tmp_path / "whole.csv", tmp_path / "broken.csv"
    frame.to_csv(whole)
    frame.loc[4, GENES[0]] = "n/a"
    frame.to_csv(broken)
    kept = np.arange(30) != 4
    one, other = (datasets.tcga_expression(place, GENES, seed=0) for place in (whole, broken))
    assert np.isnan(other.X[4, 0])
    assert np.isnan(other.Y[4])
    assert np.array_equal(one.Y[kept], other.Y[kept])


@pytest.mark.parametrize("genes", [GENES[:9], [GENES[0]] * 12, []])
def test_short_or_repeating_lists_are_refused(path, genes):
    with pytest.raises(InputError, match="at least 10 different"):
        datasets.tcga_expression(path, genes, seed=0)


def test_unknown_genes_and_missing_files_are_named(path):
    with pytest.raises(DataError, match="lacks the columns NOSUCH"):
        datasets.tcga_expression(path, [*GENES, "NOSUCH"], seed=0)
    with pytest.raises(DataError, match="none"):
        datasets.tcga_expression(path.with_stem("none"), GENES, seed=0)


def refused(path):
    with pytest.raises(DataError, match=r"'bad\.npz' cannot be read") as caught:
        datasets.tcga_expression(path, GENES, seed=0)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "arrays",
    [
        {"expression": VALUES},
        {"expression": VALUES, "genes": np.array(NAMES[:-1])},
        {"expression": VALUES[0], "genes": np.array(NAMES)},
        {"expression": VALUES, "genes": np.array([NAMES[0]] * 40)},
        {"expression": VALUES, "genes": np.array(NAMES, dtype=object)},
        {"expression": VALUES.astype(object), "genes": np.array(NAMES)},
    ],
)
def test_archives_of_another_layout_or_with_pickles_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "bad.npz", **arrays)
    refused(tmp_path / "bad.npz")


def test_corrupt_archives_are_refused(tmp_path):
    bad = tmp_path / "bad.npz"
    np.savez_compressed(bad, expression=VALUES, genes=np.array(NAMES))
    content = bad.read_bytes()
    for broken in (b"", content[:500], content[:200] + bytes(50) + content[250:], pickle.dumps(VALUES)):
        bad.write_bytes(broken)
        refused(bad)
    np.save(tmp_path / "one.npy", VALUES)
    bad.write_bytes((tmp_path / "one.npy").read_bytes())
    refused(bad)
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("expression.npy", b"not an array")
    refused(bad)
