import dataclasses
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import PLDAccountant
from scipy.stats import binom

from dpcate.errors import InputError
from dpcate.models.network import Perceptron
from dpcate.privacy import Accountant, Budget, Mechanisms, SampledGaussian, noise_source
from dpcate.privacy.mechanisms import batch_capacity
from dpcate.regress import dpsgd
from dpcate.regress.dpsgd import DPSGD, clipped_sum, double_precision, initial_weights, table_of
from dpcate.regress.problem import Problem

RELATIONS = ("replace-one", "add-or-remove-one")


def problem(n=40, width=3, seed=0, **changes):
    rng = np.random.default_rng(seed)
    rho = rng.random(n)
    plain = Problem(
        x=rng.random((n, width)),
        rho=rho,
        rho_phi=rho * rng.normal(size=n) * 3,
        reference=rng.random((16, width)),
        n=n,
        span=4.0,
        curvature=0.5,
        multiplier=1.0,
        two_valued=False,
        neighbours="replace-one",
        rows_per_person=1,
        part=None,
    )
    return dataclasses.replace(plain, **changes)


def random_weights(perceptron, members=1, seed=3):
    return np.random.default_rng(seed).normal(size=(members, perceptron.parameters))


compiled_sum = jax.jit(clipped_sum, static_argnums=(0, 1))


def summed(perceptron, loss, weights, table, batch, clip):
    with double_precision():
        return np.asarray(compiled_sum(perceptron, loss, weights, table, np.asarray(batch), clip))


@partial(jax.jit, static_argnums=(0, 1))
def gradient_of(perceptron, loss, weights, x, rho, psi):
    def loss_of(weights):
        f = jnp.stack([perceptron.output(member, x, jnp) for member in weights])
        return jnp.sum(rho * f**2 - 2 * psi * f if loss == "squared" else rho * jnp.log1p(jnp.exp(f)) - psi * f)

    return jax.grad(loss_of)(weights)


def by_loop(perceptron, loss, weights, table, batch, clip):
    """One person's gradient at a time, written out and shortened."""
    total = np.zeros_like(weights)
    with double_precision():
        for rows in (table.owned[person] for person in batch if person >= 0):
            mine = rows[rows >= 0]
            gradient = np.asarray(gradient_of(perceptron, loss, weights, *(part[mine] for part in table[:3])))
            total += gradient * min(1.0, clip / np.linalg.norm(gradient))
    return total


@pytest.mark.parametrize("clip", [0.3, 3.0, 1e6])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_one_hidden_layer_agrees_with_its_closed_form(activation, clip):
    rows, network = problem(), Perceptron((3, 5, 1), activation)
    weights = random_weights(network)
    W, b, v, c = weights[0][:15].reshape(3, 5), weights[0][15:20], weights[0][20:25], weights[0][25]
    expected = np.zeros(26)
    for x, rho, psi in zip(rows.x, rows.rho, rows.rho_phi, strict=True):
        z = x @ W + b
        h, slope = (np.tanh(z), 1 - np.tanh(z) ** 2) if activation == "tanh" else (np.maximum(z, 0), z > 0)
        error = 2 * (rho * (h @ v + c) - psi)
        inner = error * v * slope
        gradient = np.concatenate([np.outer(x, inner).ravel(), inner, error * h, [error]])
        expected += gradient * min(1.0, clip / np.linalg.norm(gradient))
    table = table_of(rows, rows.rho_phi)
    assert np.allclose(summed(network, "squared", weights, table, np.arange(40), clip), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("hidden", "members"), [((), 1), ((4,), 2), ((6, 4), 1), ((5, 4, 3), 3)])
def test_any_depth_agrees_with_a_loop_over_persons(hidden, members, loss):
    """Persons own up to three rows, which are clipped together."""
    person = np.random.default_rng(1).integers(0, 20, 40)
    rows = problem(rows_per_person=3, person=np.unique(person, return_inverse=True)[1])
    network = Perceptron((3, *hidden, 1), "tanh")
    weights, table = random_weights(network, members), table_of(rows, rows.rho_phi)
    batch = [0, 3, 4, 11, -1, -1]
    for clip in (0.5, 50.0):
        exact = by_loop(network, loss, weights, table, batch, clip)
        assert np.allclose(summed(network, loss, weights, table, batch, clip), exact, rtol=0, atol=1e-9)


def test_padding_changes_nothing():
    rows, network = problem(), Perceptron((3, 8, 1), "relu")
    weights, table = random_weights(network), table_of(rows, rows.rho_phi)
    short = summed(network, "squared", weights, table, [5, 7], 1.0)
    assert np.allclose(short, summed(network, "squared", weights, table, [5, 7, *[-1] * 30], 1.0), atol=1e-14)
    assert not summed(network, "squared", weights, table, [-1] * 4, 1.0).any()


def test_rows_beyond_a_persons_share_are_left_out():
    rows = problem(n=5, rows_per_person=2, person=np.array([0, 1, 0, 0, 1]))
    owned = table_of(rows, rows.rho_phi).owned
    assert owned[:3].tolist() == [[0, 2], [1, 4], [-1, -1]]
    with pytest.raises(InputError, match="person"):
        table_of(problem(rows_per_person=2), problem().rho_phi)


@pytest.mark.parametrize("broken", [np.inf, np.nan, 1e308])
def test_no_row_can_exceed_the_clip(broken):
    rows, network = problem(n=2), Perceptron((3, 8, 1), "tanh")
    psi = np.array([broken, 0.0])
    total = summed(network, "squared", random_weights(network), table_of(rows, psi), [0], 1.0)
    assert np.linalg.norm(total) <= 1 + 1e-9


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("k", [1, 3])
def test_one_person_moves_every_steps_sum_by_at_most_the_bound(relation, k):
    """Brute force: extreme neighbours, many weights, the same batches."""
    rng, network = np.random.default_rng(2), Perceptron((3, 6, 1), "tanh")
    person = np.repeat(np.arange(20), 2) if k > 1 else None
    changed = 1.5 if relation == "replace-one" else 0.0
    for seed in range(40):
        rows = problem(seed=seed, rows_per_person=k, person=person)
        mine = np.flatnonzero((np.arange(40) if person is None else person) == seed % 20)
        x, rho, psi = rows.x.copy(), rows.rho.copy(), rows.rho_phi.copy()
        x[mine], rho[mine], psi[mine] = rng.random((len(mine), 3)), changed, -changed * 9 * np.sign(psi[mine])
        other = dataclasses.replace(rows, x=x, rho=rho)
        weights, batch = random_weights(network, 2, seed), np.r_[np.arange(20), -1]
        one = summed(network, "squared", weights, table_of(rows, rows.rho_phi), batch, 0.7)
        two = summed(network, "squared", weights, table_of(other, psi), batch, 0.7)
        bound = 0.7 * (2 if relation == "replace-one" else 1)
        assert np.linalg.norm(one - two) <= bound * (1 + 1e-9)


class Recorder:
    """Seeded batches and zero noise, written down."""

    private = False

    def __init__(self):
        self.sds = []
        self._rng = np.random.default_rng(0)

    def bulk(self, shape, sd):
        self.sds += [sd] * shape[0]
        return np.zeros(shape)

    def poisson_sample(self, population, rate):
        return np.flatnonzero(self._rng.random(population) < rate)


def test_each_step_gets_the_declared_noise_and_adams_update():
    """The scan, in chunks, against a plain loop of the same steps."""
    rows = problem(n=40)
    trainer = DPSGD(hidden=(4,), activation="tanh", epochs=13, batch=16, learning_rate=0.05, clip=0.5)
    training, source = SampledGaussian(3.0, 0.4, trainer.steps(40)), Recorder()
    assert training.steps == 39
    done = []
    accountant = Accountant(Budget(epsilon=50, delta=1e-5))
    weights = trainer.train(rows, rows.rho_phi, "squared", Mechanisms(accountant, source), training, "t",
                            lambda step, total: done.append((step, total)))  # fmt: skip
    assert len(source.sds) == 39
    assert np.allclose(source.sds, 1.5, rtol=1e-5)
    assert done[-1] == (39, 39)

    batches = Mechanisms(Accountant(Budget(epsilon=50, delta=1e-5)), Recorder()).sampled_sums(
        "t", persons=40, training=training, dimension=1, norm_bound=0.5
    ).batches  # fmt: skip
    network, table = trainer.perceptron(3), table_of(rows, rows.rho_phi)
    theta = initial_weights(network, 1)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step, batch in enumerate(batches):
        gradient = by_loop(network, "squared", theta, table, batch, 0.5) / (0.4 * 40)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        m, v = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
        theta = theta - 0.05 * (1 - step / 39) * m / (np.sqrt(v) + 1e-8)
    assert np.allclose(weights, theta, rtol=0, atol=1e-6)


def test_chunks_bounded_by_memory_give_the_same_weights(monkeypatch):
    rows, training = problem(), SampledGaussian(3.0, 0.4, 30)
    trainer = DPSGD(hidden=(4,), activation="tanh", batch=16)

    def weights():
        mechanisms = Mechanisms(Accountant(Budget(epsilon=50, delta=1e-5)), noise_source(1))
        return trainer.train(rows, rows.rho_phi, "squared", mechanisms, training, "t")

    one = weights()
    monkeypatch.setattr(dpsgd, "CHUNKS", 1)
    monkeypatch.setattr(dpsgd, "CHUNK_BYTES", 7 * 8 * trainer.perceptron(3).parameters)
    assert np.allclose(one, weights(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("persons", "batch", "steps"), [(1350, 128, 550), (50, 128, 10), (10_000, 64, 5000)])
def test_a_batch_hardly_ever_exceeds_its_capacity(persons, batch, steps):
    training = SampledGaussian(1.0, min(1.0, batch / persons), steps)
    capacity = batch_capacity(persons, training)
    assert steps * binom.sf(capacity, persons, training.sampling_rate) < 1e-12


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_spent_epsilon_is_that_of_the_privacy_loss_distribution(relation):
    budget = Budget(epsilon=2.0, delta=1e-5, neighbours=relation)
    mechanisms = Mechanisms(Accountant(budget), noise_source(0))
    rows = problem(n=200, neighbours=relation)
    trainer = DPSGD(hidden=(4,), activation="tanh", epochs=10, batch=32)
    training = trainer.affordable(rows, mechanisms, budget.mu, times=2)
    assert (training.sampling_rate, training.steps) == (32 / 200, 70)
    for name in ("one", "two"):
        trainer.train(rows, rows.rho_phi, "squared", mechanisms, training, name)
    spent = mechanisms.accountant.epsilon_spent()
    assert 1.97 < spent <= 2.0
    kind = NeighboringRelation.REPLACE_ONE if relation == "replace-one" else NeighboringRelation.ADD_OR_REMOVE_ONE
    event = dp_event.PoissonSampledDpEvent(32 / 200, dp_event.GaussianDpEvent(training.noise_multiplier))
    reference = PLDAccountant(kind).compose(dp_event.SelfComposedDpEvent(event, 140)).get_epsilon(1e-5)
    assert spent == pytest.approx(reference, rel=1e-3)


def test_other_users_of_jax_keep_their_precision():
    rows, training = problem(), SampledGaussian(3.0, 0.4, 3)
    mechanisms = Mechanisms(Accountant(Budget(epsilon=50, delta=1e-5)), noise_source(1))
    weights = DPSGD(hidden=(4,), activation="relu").train(rows, rows.rho_phi, "logistic", mechanisms, training, "t")
    assert weights.dtype == np.float64
    assert jnp.zeros(1).dtype == np.float32


@pytest.mark.parametrize(
    "settings",
    [{"hidden": [32]}, {"hidden": (0,)}, {"activation": "sigmoid"}, {"batch": 0}, {"batch": 1.5}, {"clip": 0.0},
     {"learning_rate": np.nan}, {"epochs": -1}, {"epochs": True}, {"members": 0}],
)  # fmt: skip
def test_bad_settings_are_refused(settings):
    with pytest.raises(InputError):
        DPSGD(**{"hidden": (4,), "activation": "relu", **settings})


def test_the_library_imports_without_jax_and_says_what_is_missing():
    script = (
        "import sys; sys.modules['jax'] = None; import dpcate; from dpcate.errors import InputError\n"
        "from dpcate.nuisance import NetworkNuisance\n"
        "try: NetworkNuisance()\n"
        "except InputError as error: print(error)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert answer.strip() == "a network needs the extra: pip install 'dpcate[network]'"
