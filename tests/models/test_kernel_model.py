import msgspec
import numpy as np
import pytest

from dpcate.errors import ReleaseError
from dpcate.models.kernel import JITTER, KernelModel
from dpcate.models.kernels import gram

rng = np.random.default_rng(1)
POINTS, REFERENCE, X = rng.random((40, 2)), rng.random((120, 2)), rng.random((7, 2))
H, NOISE, SAMPLING, PRIOR, CURVATURE, PENALTY = 0.4, 0.2, 0.05, 0.5, 0.25, 0.02


def model(**changes):
    plain = KernelModel(
        offset=1.0, offset_sd=0.1, kernel="gaussian", bandwidth=H, points=POINTS.tolist(),
        values=np.sin(5 * POINTS[:, 0]).tolist(), noise_sd=NOISE, sampling_sd=SAMPLING, prior_sd=PRIOR,
        curvature=CURVATURE, penalty=PENALTY,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def k(A, B):
    return gram("gaussian", H, A, B)


def test_value_interpolates_the_released_values():
    assert np.allclose(model().value(POINTS), 1.0 + np.sin(5 * POINTS[:, 0]), atol=1e-5)
    weights = np.linalg.solve(k(POINTS, POINTS) + JITTER * np.eye(40), np.sin(5 * POINTS[:, 0]))
    assert np.allclose(model().value(X), 1.0 + k(X, POINTS) @ weights, atol=1e-5)
    assert model().width == 2


def test_value_and_sd_do_not_depend_on_how_many_points_are_asked(monkeypatch):
    value, sd = model().value(X), model().sd(X, REFERENCE)
    monkeypatch.setattr("dpcate.models.kernel.CHUNK", 3)
    assert np.allclose(model().value(X), value)
    assert np.allclose(model().sd(X, REFERENCE), sd)
    assert model().value(X[:0]).shape == model().sd(X[:0], REFERENCE).shape == (0,)


def test_privacy_noise_in_the_interpolant_is_what_sd_says():
    """Interpolate many pure noise paths: the empirical variance is r²·s(x), within 6.5 standard deviations."""
    factor = np.linalg.cholesky(k(POINTS, POINTS) + JITTER * np.eye(40))
    paths = NOISE * factor @ np.random.default_rng(2).standard_normal((40, 4000))
    drawn = np.array([model(offset=0.0, values=path.tolist()).value(X) for path in paths.T])
    expected = model(offset_sd=0.0, sampling_sd=0.0, prior_sd=0.0).sd(X, REFERENCE)
    assert (expected <= NOISE).all()
    assert (np.abs((drawn**2).mean(axis=0) / expected**2 - 1) < 6.5 * np.sqrt(2 / 4000)).all()


def test_far_from_the_points_only_the_prior_is_left():
    far = np.full((1, 2), 50.0)
    assert model().value(far) == pytest.approx(1.0)
    assert model().sd(far, REFERENCE) == pytest.approx(np.hypot(0.1, PRIOR))


def test_shrinkage_and_interpolation_error_is_that_of_a_random_function():
    """Draw f ~ GP(0, s²k), fit it without noise on the reference points, interpolate from P: compare errors."""
    everywhere = np.concatenate([X, REFERENCE])
    factor = np.linalg.cholesky(k(everywhere, everywhere) + 1e-10 * np.eye(len(everywhere)))
    f = PRIOR * factor @ np.random.default_rng(3).standard_normal((len(everywhere), 4000))
    ridge = k(REFERENCE, REFERENCE) + PENALTY * len(REFERENCE) / CURVATURE * np.eye(len(REFERENCE))
    fitted = k(POINTS, REFERENCE) @ np.linalg.solve(ridge, f[len(X) :])
    weights = np.linalg.solve(k(POINTS, POINTS) + JITTER * np.eye(40), fitted)
    errors = f[: len(X)] - k(X, POINTS) @ weights
    expected = model(offset_sd=0.0, sampling_sd=0.0, noise_sd=0.0).sd(X, REFERENCE)
    assert (np.abs((errors**2).mean(axis=1) / expected**2 - 1) < 6.5 * np.sqrt(2 / 4000)).all()


def test_sd_grows_with_every_part():
    plain = model().sd(X, REFERENCE)
    for part in ("offset_sd", "noise_sd", "sampling_sd", "prior_sd", "penalty"):
        assert (model(**{part: 2.0}).sd(X, REFERENCE) > plain).all()


def test_it_survives_json():
    assert msgspec.json.decode(msgspec.json.encode(model()), type=KernelModel) == model()
    assert msgspec.json.decode(msgspec.json.encode(model()))["kind"] == "kernel"


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": np.inf}, {"values": [np.nan] * 40}, {"noise_sd": -1.0}, {"penalty": 0.0}, {"values": [0.0] * 39},
        {"points": [[0.0], [0.0, 1.0]], "values": [0.0, 0.0]}, {"points": [], "values": []},
        {"points": [[]], "values": [0.0]}, {"kernel": "rbf"}, {"bandwidth": 0.0}, {"bandwidth": np.nan},
    ],
)  # fmt: skip
def test_malformed_models_are_refused(changes):
    with pytest.raises(ReleaseError):
        model(**changes)
