"""calibration="paper": available by name, marked everywhere, never silent."""

import json
import warnings

import numpy as np
import pytest

import dpcate
from dpcate import PrivateCATE
from dpcate.errors import InputError
from dpcate.paper import PaperFeatures, PaperKernel, PaperNetwork
from dpcate.pipeline import UnprovenWarning
from dpcate.report import report_html

DATA = dpcate.datasets.synthetic(1, 240, seed=4)
QUERIES = np.random.default_rng(0).random((5, 2))
STAGES = {"features": PaperFeatures(), "kernel": PaperKernel(), "network": PaperNetwork(hidden=(4,))}


def estimator(second_stage, **changes):
    settings = {"epsilon": 2.0, "delta": 1e-5, "split": "disjoint", "queries": QUERIES, "random_state": 0}
    return PrivateCATE(DATA.schema, second_stage=STAGES[second_stage], calibration="paper", **{**settings, **changes})


@pytest.mark.parametrize("learner", ["r", "dr"])
@pytest.mark.parametrize("split", ["disjoint", "none"])
@pytest.mark.parametrize("second_stage", STAGES)
def test_it_warns_and_says_unproven(second_stage, split, learner):
    with pytest.warns(UnprovenWarning, match="unproven"):
        model = estimator(second_stage, split=split, learner=learner).fit(DATA.Y, DATA.T, X=DATA.X)
    release = model.release_
    assert release.guarantee == "unproven"
    assert release.proof == "none"
    assert release.spec.calibration == "paper"
    assert np.isfinite(release.effect(QUERIES)).all()
    assert dpcate.Release.from_json(release.to_json()) == release
    assert "UNPROVEN" in report_html(release)


@pytest.mark.parametrize("second_stage", ["kernel", "network"])
def test_data_dependent_scales_never_leave(second_stage):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(second_stage).fit(DATA.Y, DATA.T, X=DATA.X)
    charge = json.loads(model.release_.to_json())["charges"][-1]
    assert charge["sensitivity"] is None
    assert charge["sd"] is None
    assert model.release_.model.sds is None
    with pytest.raises(dpcate.errors.ReleaseError, match="no intervals"):
        model.effect_interval(QUERIES)
    notes = model.kept_
    assert repr(notes) == "<CuratorNotes: sealed>"
    assert notes.show().startswith("NOT FOR SHARING")
    if second_stage == "kernel":
        assert notes.gross_error_sensitivity <= notes.certified_bound


def test_other_points_raise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator("kernel").fit(DATA.Y, DATA.T, X=DATA.X)
    with pytest.raises(dpcate.errors.ReleaseError, match="declared points only"):
        model.effect(DATA.X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": "crossfit"}, "split='disjoint'"),
        ({"queries": None}, "needs queries"),
        ({"neighbours": "add-or-remove-one"}, "replace-one"),
        ({"calibration": "other"}, "calibration must be"),
        ({"second_stage": "forest"}, "second_stage must be"),
        ({"queries": [[np.nan, 0.5]]}, "queries must be"),
    ],
)
def test_what_it_cannot_do_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        estimator("kernel").set_params(**changes).fit(DATA.Y, DATA.T, X=DATA.X)
