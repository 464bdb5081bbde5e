import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from dpcate.errors import ReleaseError
from dpcate.models import NetworkModel
from dpcate.models.network import Perceptron
from dpcate.regress.dpsgd import double_precision

rng = np.random.default_rng(1)
NETWORK = Perceptron((2, 4, 3, 1), "tanh")
MEMBERS = rng.normal(size=(3, NETWORK.parameters))


def model(**changes):
    plain = NetworkModel(
        sizes=[2, 4, 3, 1], activation="tanh", members=MEMBERS.tolist(), offset=1.0, offset_sd=0.1, scale=2.0,
        sampling_sd=0.05, misfit_sd=0.2,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (5,), (4, 3), (3, 3, 3)])
def test_numpy_computes_what_jax_trains(hidden, activation):
    network, x = Perceptron((2, *hidden, 1), activation), rng.random((7, 2))
    weights = rng.normal(size=network.parameters)
    with double_precision():
        trained = network.output(jnp.asarray(weights), jnp.asarray(x), jnp)
    assert np.allclose(network.output(weights, x), trained, rtol=0, atol=1e-12)


def test_the_layers_are_laid_out_one_after_another():
    (W, b), (V, c) = Perceptron((2, 3, 1), "relu").layers(np.arange(13))
    assert W.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert b.tolist() == [6, 7, 8]
    assert V.ravel().tolist() == [9, 10, 11]
    assert c.tolist() == [12]


def test_value_is_the_offset_plus_the_scaled_mean():
    x = rng.random((5, 2))
    outputs = np.stack([NETWORK.output(member, x) for member in MEMBERS])
    assert np.allclose(model().value(x), 1.0 + 2.0 * outputs.mean(0))
    assert model().width == 2


def test_sd_is_offset_spread_sampling_and_misfit():
    x, reference = rng.random((5, 2)), rng.random((50, 2))
    alike = model(members=[MEMBERS[0].tolist()] * 3)
    assert np.allclose(alike.sd(x, reference), np.sqrt(0.1**2 + 0.05**2 + 0.2**2))
    spread = model(offset_sd=0.0, sampling_sd=0.0, misfit_sd=0.0).sd(reference, reference)
    outputs = 2.0 * np.stack([NETWORK.output(member, reference) for member in MEMBERS])
    assert np.mean(spread**2) == pytest.approx(np.mean(outputs.var(0, ddof=1)) / 3)


def test_it_survives_json():
    again = msgspec.json.decode(msgspec.json.encode(model()), type=NetworkModel)
    assert again == model()


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": np.inf}, {"scale": 0.0}, {"scale": np.nan}, {"offset_sd": -1.0}, {"sampling_sd": -0.1},
        {"misfit_sd": -0.1}, {"sizes": [2, 4, 1]}, {"sizes": [1]}, {"sizes": []}, {"sizes": [2, 0, 1]},
        {"sizes": [2, 4, 3, 2]}, {"activation": "sigmoid"}, {"members": []}, {"members": [MEMBERS[0].tolist()]},
        {"members": [[np.nan] * NETWORK.parameters] * 2}, {"members": [[0.0] * 5, [0.0] * 6]},
    ],
)  # fmt: skip
def test_malformed_models_are_refused(changes):
    with pytest.raises(ReleaseError):
        model(**changes)
