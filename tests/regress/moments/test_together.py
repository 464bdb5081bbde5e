from types import SimpleNamespace

import numpy as np
import pytest

from dpcate.models.basis import Basis
from dpcate.regress.moments import rules, together
from dpcate.regress.moments.together import LATE_IMPORTANCE, _played_late, _start, _together
from dpcate.regress.sizes import Place


@pytest.mark.parametrize(
    ("scale", "doubt", "allowed"),
    [(1.0, 0.5, np.exp(0.5)), (9.0, 0.5, 10.0), (20.0, 0.7, 20.0)],
    ids=["small and doubtful", "no more than was believed before any look", "larger than that"],
)
def test_an_average_effect_is_shrunk_by_what_the_scale_may_be(scale, doubt, allowed):
    basis, before = Basis.additive(np.full(2, 0.5), np.full(2, 0.29), 1, 1), Place.prior(0.0, 70.0)
    assert before.scale == pytest.approx(10.0)
    outcome, effect = _start(100.0, basis, 0.1, before, Place(30.0, 1.0, scale, doubt), 0.5).blocks
    np.testing.assert_allclose(effect.evidence.prior.variance, (allowed * rules.AVERAGE_SIZES) ** 2)
    assert effect.evidence.prior.sizes.max() <= scale
    assert outcome.evidence.prior.variance == pytest.approx((1.0 + 0.1 * scale) ** 2)


def begun():
    basis = Basis.additive(np.full(2, 0.5), np.full(2, 0.29), 1, 1)
    return _start(1000.0, basis, 0.1, Place.prior(0.0, 70.0), Place(30.0, 1.0, 5.0, 0.2), 0.5)


def test_confounding_is_what_outcome_and_treatment_may_share():
    state, doubt = begun(), np.array([9.0, 0.1, 0.2])
    expected = state.beliefs[0].variance[1:] @ doubt[1:]
    start = _together(state, None, Place(30.0, 1.0, 5.0, 0.2), doubt, 0.5, finished=True).start
    assert start.confounding == pytest.approx(expected)
    assert start.outcome_scale == 5.0
    assert start.finished


@pytest.mark.parametrize(("left", "counts"), [(3, 0.3), (1, 0.0)], ids=["a round", "the last one"])
def test_in_late_rounds_the_outcome_matters_as_far_as_the_propensity_is_in_doubt(monkeypatch, left, counts):
    monkeypatch.setattr(together, "played", lambda *arguments, **named: named)
    rows = SimpleNamespace(describe=lambda basis: None)
    round_of = _played_late(begun(), rows, 1.0, "name", np.array([9.0, 0.1, 0.2]), False, left)
    assert round_of["importance"] == pytest.approx(LATE_IMPORTANCE + counts)
    assert round_of["left"] == left
