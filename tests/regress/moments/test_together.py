import numpy as np
import pytest

from dpcate.models.basis import Basis
from dpcate.regress.moments import rules
from dpcate.regress.moments.together import _start
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
