"""Every release of sums.py: it is the sum that it claims to be, and no neighbour moves it beyond its sensitivity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcate.diagnostics.sums import Sums
from dpcate.privacy import Accountant, Budget, Mechanisms, noise_source

WEIGHTS = (0.5, 1.0, 0.35)
HOSTILE = [-1e300, -1.0, -1e-9, 0.0, 0.4, 1.0, 1e300, np.nan, np.inf, -np.inf]


class Quiet(Mechanisms):
    """Keeps each statistic as it was before noise."""

    def _release(self, name, mechanism, vector, sensitivity, mu, part):
        self.seen = vector.copy()
        return super()._release(name, mechanism, vector, sensitivity, mu, part)


def summed(table, relation, rows_per_person):
    """The three releases of a table (bin, group, three entries, presence): statistics and sensitivities."""
    mechanisms = Quiet(Accountant(Budget(epsilon=5.0, delta=1e-5, neighbours=relation)), noise_source(0))
    sums = Sums(
        present=np.array([row[-1] for row in table], dtype=bool),
        neighbours=relation, rows_per_person=rows_per_person, part=None, mechanisms=mechanisms,
    )  # fmt: skip
    bins, groups = (np.array([row[j] for row in table], dtype=int) for j in (0, 1))
    entries = [np.array([row[j] for row in table], dtype=float) for j in (2, 3, 4)]
    found = []
    for release in (
        lambda: sums.counts("counts", bins, 4, 0.1),
        lambda: sums.in_box("box", entries, WEIGHTS, 0.1),
        lambda: sums.in_ball("ball", entries, WEIGHTS, 0.1, groups, 3),
    ):
        noisy = release()
        bound = mechanisms.accountant.charges[-1].sensitivity.value
        assert noisy.sd == pytest.approx(bound / 0.1, rel=1e-5)
        found.append((mechanisms.seen, bound))
    return found


rows = st.tuples(
    st.integers(-2, 6), st.integers(-2, 6), *[st.sampled_from(HOSTILE)] * 3, st.sampled_from([True, True, False])
)


@given(
    st.lists(rows, min_size=4, max_size=4), st.integers(1, 3), st.sampled_from(["replace-one", "add-or-remove-one"]),
    st.data(),
)  # fmt: skip
def test_no_neighbour_moves_a_sum_beyond_its_sensitivity(common, k, relation, data):
    theirs = data.draw(st.lists(rows, min_size=1, max_size=k))
    others = data.draw(st.lists(rows, max_size=k)) if relation == "replace-one" else []
    pairs = zip(summed([*common, *theirs], relation, k), summed([*common, *others], relation, k), strict=True)
    for (one, bound), (other, _) in pairs:
        assert np.isfinite(one).all()
        assert np.linalg.norm(one - other) <= bound * (1 + 1e-9)


def test_sensitivities_are_attained():
    counts, box, ball = (
        (np.linalg.norm(one - other), bound)
        for (one, bound), (other, _) in zip(
            summed([(0, 0, 1.0, 1.0, 1.0, True)], "replace-one", 1),
            summed([(1, 0, -1.0, -1.0, -1.0, True)], "replace-one", 1),
            strict=True,
        )
    )
    for shift, bound in (counts, box, ball):
        assert shift == pytest.approx(bound)


def test_sums_are_those_of_present_rows_one_by_one():
    rng = np.random.default_rng(0)
    table = [
        (*rng.integers(0, 4, 1), *rng.integers(0, 3, 1), *rng.uniform(-2, 2, 3), bool(rng.integers(0, 2)))
        for _ in range(50)
    ]
    counts, box, ball = np.zeros(4), np.zeros(3), np.zeros((3, 3))
    for place, group, *entries, present in table:
        if present:
            counts[place] += 1
            box += np.clip(entries, 0, 1) * WEIGHTS
            ball[group] += np.clip(entries, -1, 1) * WEIGHTS
    found = summed(table, "replace-one", 1)
    for (seen, _), expected in zip(found, (counts, box, ball.ravel()), strict=True):
        np.testing.assert_allclose(seen, expected, atol=1e-12)


def test_sums_stay_sealed():
    assert repr(Sums(present=np.ones(1), neighbours="replace-one", rows_per_person=1, part=None, mechanisms=None)) == (
        "<Sums: sealed>"
    )
