"""Which files a kept run depends on."""

import inspect

import numpy as np
import pytest

from dpcate import PrivateCATE, datasets
from dpcate.bench.peers.method import ONLY_DEFAULT
from dpcate.bench.versions import files_of, version_of
from dpcate.regress.moments import stage


def test_the_digest_leaves_out_what_is_named_and_nothing_else():
    assert [path.name for path in files_of(ONLY_DEFAULT)] == ["stage.py"]
    assert version_of("dpcate", without=ONLY_DEFAULT) != version_of("dpcate")
    assert version_of("dpcate", without=("no/such/file.py",)) == version_of("dpcate")


@pytest.mark.parametrize("second_stage", ["features", "kernel"])
def test_other_second_stages_compute_nothing_with_the_defaults_file(monkeypatch, second_stage):
    def fails(*args, **kwargs):
        raise AssertionError("the default's second stage was asked")

    for name, function in inspect.getmembers(stage, inspect.isfunction):
        if function.__module__ == stage.__name__:
            monkeypatch.setattr(stage, name, fails)
    monkeypatch.setattr(stage.Moments, "fit", fails)
    data = datasets.synthetic(1, 200, seed=0)
    settings = {"epsilon": 1.0, "delta": 1e-5, "random_state": 0}
    fitted = PrivateCATE(data.schema, second_stage=second_stage, **settings).fit(data.Y, data.T, X=data.X)
    assert np.isfinite(fitted.effect(data.X[:3])).all()
    with pytest.raises(AssertionError, match="was asked"):
        PrivateCATE(data.schema, **settings).fit(data.Y, data.T, X=data.X)
