import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcate
from dpcate import Release
from dpcate.errors import DpcateError, ReleaseError
from dpcate.query import multiplier

DATA = dpcate.datasets.synthetic(1, 200, seed=0)
RELEASE = (
    dpcate.PrivateCATE(DATA.schema, epsilon=1.0, delta=1e-6, second_stage="features", random_state=0)
    .fit(DATA.Y, DATA.T, X=DATA.X)
    .release_
)
PLAIN = json.loads(RELEASE.to_json())
DIAGNOSED = (
    dpcate.PrivateCATE(DATA.schema, epsilon=1.0, delta=1e-6, diagnostics=dpcate.diagnostics.NAMES, random_state=0)
    .fit(DATA.Y, DATA.T, X=DATA.X)
    .release_
)


def test_it_holds_what_it_should_and_nothing_else():
    assert set(PLAIN) == {
        "format", "version", "library", "private", "guarantee", "proof", "epsilon", "delta", "neighbours", "persons",
        "schema", "spec", "charges", "model", "average", "diagnostics",
    }  # fmt: skip
    assert PLAIN["format"] == "dpcate-release"
    assert PLAIN["guarantee"] == "proven"
    assert set(PLAIN["charges"][0]) == {"name", "mechanism", "rows", "spent", "sensitivity", "sd", "proof"}


def test_round_trip():
    assert Release.from_json(RELEASE.to_json()) == RELEASE


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["version"], 2), (["format"], "pickle"), (["epsilon"], 0), (["epsilon"], "1"), (["delta"], 1.0),
        (["delta"], -1), (["neighbours"], "swap"), (["guarantee"], "trust me"), (["private"], "yes"),
        (["model", "coefficients"], []), (["model", "coefficients", 0], "nan"), (["model", "kind"], "exec"),
        (["model", "frequencies", 0], [1.0]), (["model", "coefficient_sd"], -1.0), (["schema"], {}),
        (["model", "sampling_sd"], 1e155), (["model", "offset"], -1e307),
        (["schema", "covariates", "x0", "low"], 9.0), (["schema", "outcome", "low"], None),
        (["charges", 0, "spent"], {"kind": "gaussian", "mu": -1.0}),
        (["charges"], {}), (["average", "sd"], -1.0), (["average"], 3.0),
        (["spec", "split"], "x"), (["extra"], 1), (["model", "extra"], 1), (["persons"], 1.5),
    ],
)  # fmt: skip
def test_anything_malformed_is_refused_in_one_line(path, value):
    document = json.loads(RELEASE.to_json())
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ReleaseError, match="release") as refusal:
        Release.from_json(json.dumps(document).encode())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ([], 3.0), (["extra"], 1), (["overlap", "control"], [1.0]), (["overlap", "control", 0], "1"),
        (["overlap", "sd"], 0.0), (["overlap", "sd"], -1.0), (["overlap", "margin"], 2.0),
        (["overlap", "treated", 3], 1e200),
        (["outcome", "unexplained"], None), (["outcome", "unexplained", "numerator_variance"], -1.0),
        (["outcome", "unexplained", "covariance"], 1e30), (["heterogeneity", "slope", "denominator"], 1e155),
        (["heterogeneity", "slope", "extra"], 0.0), (["calibration", "groups"], []), (["calibration", "cuts"], []),
        (["calibration", "cuts", 0], 1e99), (["calibration", "limit"], 0.0),
        (["calibration", "groups", 0, "predicted"], None),
    ],
)  # fmt: skip
def test_malformed_diagnostics_are_refused_in_one_line(path, value):
    document = json.loads(DIAGNOSED.to_json())
    inner, *rest = [document, "diagnostics", *path]
    for key in rest[:-1]:
        inner = inner[key]
    inner[rest[-1]] = value
    with pytest.raises(ReleaseError, match="release") as refusal:
        Release.from_json(json.dumps(document).encode())
    assert "\n" not in str(refusal.value)


def test_diagnostics_survive_the_file():
    assert Release.from_json(DIAGNOSED.to_json()) == DIAGNOSED
    assert set(json.loads(DIAGNOSED.to_json())["diagnostics"]) == set(dpcate.diagnostics.NAMES)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"null", b"[]", b"{", b"\xff\xfe", b"\x80\x04\x95pickle", b'{"format": "dpcate-release"}',
        b"[" * 100_000, b'{"a":' * 100_000, RELEASE.to_json()[:-20], RELEASE.to_json().replace(b"1.0", b"NaN"),
        RELEASE.to_json().replace(b'"epsilon": 1.0', b'"epsilon": 1e999'),
        RELEASE.to_json().replace(b'"epsilon": 1.0', b'"epsilon": ' + b"9" * 5000),
        RELEASE.to_json().replace(b'"schema": {', b'"schema": {"x": ' + b"[" * 5000 + b"]" * 5000 + b","),
    ],
)  # fmt: skip
def test_hostile_content_is_refused_in_one_line(content):
    with pytest.raises(ReleaseError) as refusal:
        Release.from_json(content)
    assert "\n" not in str(refusal.value)


@given(st.data())
def test_random_damage_never_escapes_as_another_error(data):
    content = bytearray(RELEASE.to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
    try:
        Release.from_json(bytes(content)).effect(DATA.X[:2])
    except DpcateError as error:
        assert "\n" not in str(error)


def test_missing_keys_are_refused():
    for key in PLAIN:
        damaged = {name: value for name, value in PLAIN.items() if name != key}
        with pytest.raises(ReleaseError, match=key):
            Release.from_json(json.dumps(damaged).encode())


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "release.json"
    RELEASE.save(target)
    before = target.read_bytes()

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        RELEASE.save(target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["release.json"]


def test_missing_or_unwritable_files_are_one_line_errors(tmp_path):
    with pytest.raises(DpcateError, match="cannot be read"):
        Release.load(tmp_path / "nothing.json")
    with pytest.raises(DpcateError, match="cannot be written"):
        RELEASE.save(tmp_path / "no folder" / "release.json")
    with pytest.raises(DpcateError, match="is a directory"):
        RELEASE.save(tmp_path)


def test_queries_outside_the_bounds_are_answered_at_the_bound_and_gaps_are_nan():
    inside, outside = RELEASE.effect([[1.0, 0.0]]), RELEASE.effect([[7.0, -3.0]])
    assert np.array_equal(inside, outside)
    answers = RELEASE.effect({"x0": [0.5, None, "?"], "x1": [0.5, 0.5, 0.5]})
    assert np.isfinite(answers[0])
    assert np.isnan(answers[1:]).all()


@pytest.mark.parametrize("alpha", [0, 1, -0.1, float("nan"), "0.1", True])
def test_bad_alpha_is_refused(alpha):
    with pytest.raises(DpcateError, match="alpha"):
        RELEASE.effect_interval(DATA.X, alpha)


def test_smaller_alpha_is_wider():
    narrow, wide = (np.subtract(*RELEASE.effect_interval(DATA.X[:5], alpha)[::-1]) for alpha in (0.5, 0.05))
    assert (narrow < wide).all()


def test_simultaneous_intervals_hold_together():
    """Bonferroni over distinct points: wider than alone, alone for one point, unmoved by repetition or gaps."""
    points = DATA.X[:5]
    alone, together = (np.stack(RELEASE.effect_interval(points, simultaneous=s)) for s in (False, True))
    range_ = DATA.schema.outcome.range
    low, high = (together[0] < alone[0]) | (alone[0] == -range_), (together[1] > alone[1]) | (alone[1] == range_)
    assert low.all()
    assert high.all()
    assert (together[1] - together[0] > alone[1] - alone[0]).all()
    fifth = np.stack(RELEASE.effect_interval(points, alpha=0.1 / 5))
    assert np.array_equal(together, fifth)
    repeated = np.stack(RELEASE.effect_interval(np.vstack([points, points[:2]]), simultaneous=True))
    assert np.allclose(repeated[:, :5], together, rtol=1e-12)
    one = RELEASE.effect_interval(points[:1], simultaneous=True)
    assert np.allclose(np.stack(one)[:, 0], alone[:, 0], rtol=1e-12)
    gap = RELEASE.effect_interval({"x0": [0.5, None], "x1": [0.5, 0.5]}, simultaneous=True)
    assert np.isnan(gap[0][1])


@pytest.mark.parametrize("correlation", [0.0, 0.9, 1.0])
def test_the_multiplier_covers_jointly_whatever_the_correlation(correlation):
    draws = np.random.default_rng(0)
    errors = np.sqrt(correlation) * draws.standard_normal((20_000, 1))
    errors = errors + np.sqrt(1 - correlation) * draws.standard_normal((20_000, 8))
    covered = (np.abs(errors) <= multiplier(0.1, 8)).all(axis=1).mean()
    assert covered > 0.9 - 5 * np.sqrt(0.09 / 20_000)
