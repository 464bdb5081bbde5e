"""DP-SGD: small networks trained by noisy sums of clipped gradients over Poisson samples of persons.

A step with batch B, weights θ and noise η ~ N(0, (zC)²I) is
    s = Σ_{p∈B} Gₚ·min(1, C/‖Gₚ‖) + η,   Gₚ = Σ_{rows i of p} ∇ℓᵢ(θ),   θ ← θ − γₜ·Adam(s / E|B|),
with the expected batch size E|B|, which is public. A person's rows join a batch together and their gradients are
added before the clip, so one person moves s by at most C (proofs/sampled-sums.md). The number of steps, the rate
γₜ (which falls linearly to zero) and the initial weights are fixed before a row is read: nothing stops early.

Index −1 is nobody, and the last row is nobody's: it has ρ = ψ = 0, so padding has gradient zero. Everything is
computed in double precision, and one compiled scan serves all steps and all trainings of the same shape.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dpcate.errors import InputError
from dpcate.models.network import Activation, Perceptron
from dpcate.privacy import Budget, Mechanisms, SampledGaussian, gdp_epsilon
from dpcate.privacy.accounting import cheapest_training
from dpcate.privacy.mechanisms import SampledSums
from dpcate.regress.problem import Problem

Loss = Literal["squared", "logistic"]
Progress = Callable[[int, int], None]

CHUNKS = 20  # progress reports per training
CHUNK_BYTES = 200e6  # of noise held at once
ROUND_UP = 64  # rows, persons and batches are padded to multiples, so that similar tables share one compilation


class Table(NamedTuple):
    """What is trained on: rows (x, ρ, ψ), the last one nobody's, and the rows of each person, −1 for none."""

    x: Any
    rho: Any
    psi: Any
    owned: Any


@dataclass(frozen=True, kw_only=True)
class DPSGD:
    """Everything about a training that is decided before a row is read."""

    hidden: tuple[int, ...]
    activation: Activation
    epochs: float = 50
    batch: int = 128
    learning_rate: float = 0.01
    clip: float = 1.0
    members: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple) or not all(_whole(size, 1, 4096) for size in self.hidden):
            raise InputError("hidden must be a tuple of layer widths, each from 1 to 4096, such as (32,)")
        if self.activation not in get_args(Activation):
            raise InputError(f"activation must be one of {', '.join(get_args(Activation))}")
        if not (_whole(self.batch, 1, 1 << 30) and _whole(self.members, 1, 256)):
            raise InputError("batch and members must be positive whole numbers, and members at most 256")
        for name in ("epochs", "learning_rate", "clip"):
            value = getattr(self, name)
            if isinstance(value, bool) or not (isinstance(value, int | float) and 0 < value <= 1e6):
                raise InputError(f"{name} must be a positive number")
        require_jax()

    def sampling_rate(self, n: float) -> float:
        return min(1.0, self.batch / n)

    def steps(self, n: float) -> int:
        """As many batches as the epochs over n persons take."""
        return max(1, round(self.epochs * math.ceil(n / self.batch)))

    def affordable(self, problem: Problem, mechanisms: Mechanisms, mu: float, times: int) -> SampledGaussian:
        """The training with least noise of which `times` together are as private as a Gaussian release at μ.

        As private: (ε(μ), δ)-DP at the δ of the whole budget.
        """
        whole = mechanisms.accountant.budget
        epsilon = min(gdp_epsilon(mu, whole.delta), whole.epsilon)
        return cheapest_training(
            Budget(epsilon=epsilon, delta=whole.delta, neighbours=whole.neighbours),
            sampling_rate=self.sampling_rate(problem.n),
            steps=self.steps(problem.n),
            times=times,
        )

    def rest(self, problem: Problem, mechanisms: Mechanisms) -> SampledGaussian:
        """The training with least noise that the whole budget still covers."""
        rate, steps = self.sampling_rate(problem.n), self.steps(problem.n)
        return mechanisms.accountant.training_left(sampling_rate=rate, steps=steps, part=problem.part)

    def unclipped(self, slope: float, width: int) -> float:
        """The public factor for a loss with |ℓ'(f)| up to `slope` under which typical gradients pass the clip whole.

        Two-valued outcomes need it: their errors are lopsided, so clipped gradients would vanish off the mean. The
        last layer's h has about ‖h‖² = size/3 on the unit box at the initial weights, so ‖∇f‖² is about 1 + size/3.
        """
        last = (width, *self.hidden)[-1]
        return self.clip / (slope * math.sqrt(self.members * (1 + last / 3)))

    def perceptron(self, width: int) -> Perceptron:
        return Perceptron((width, *self.hidden, 1), self.activation)

    def train(
        self,
        problem: Problem,
        psi: np.ndarray,
        loss: Loss,
        mechanisms: Mechanisms,
        training: SampledGaussian,
        name: str,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """The weights of every member, one row each, for one charge. The loss reads ρ from the problem and ψ.

        squared:  ℓ(f) = ρf² − 2ψf.   logistic:  ℓ(f) = ρ·log(1 + eᶠ) − ψf.
        """
        perceptron = self.perceptron(problem.x.shape[1])
        table = table_of(problem, psi)
        start = initial_weights(perceptron, self.members)
        sums = mechanisms.sampled_sums(
            f"{name}: training",
            persons=persons_of(problem),
            training=training,
            dimension=start.size,
            norm_bound=self.clip,
            part=problem.part,
        )
        expected = training.sampling_rate * problem.n
        return self._descend(perceptron, loss, table, sums, start, expected, progress or (lambda done, total: None))

    def _descend(
        self,
        perceptron: Perceptron,
        loss: Loss,
        table: Table,
        sums: SampledSums,
        start: np.ndarray,
        expected: float,
        progress: Progress,
    ) -> np.ndarray:
        steps, scan = len(sums.batches), _compiled(perceptron, loss)
        with double_precision():
            state = start, _adam().init(start)
            for first, batches, noise in _chunks(sums, start.shape):
                rates = self.learning_rate * np.maximum(0.0, 1 - np.arange(first, first + len(batches)) / steps)
                state = scan(state, table, (batches, noise, rates), expected, self.clip)
                state[0].block_until_ready()
                progress(min(first + len(batches), steps), steps)
            return np.asarray(state[0])


def persons_of(problem: Problem) -> int:
    return len(problem.x) if problem.person is None else int(problem.person.max(initial=-1)) + 1


def table_of(problem: Problem, psi: np.ndarray) -> Table:
    """Rows with room for nobody's, and each person's first `rows_per_person` rows."""
    rows, most = len(problem.x), problem.rows_per_person
    if problem.person is None and most > 1:
        raise InputError("a person with several rows needs to be told apart: the problem must name each row's person")
    person = np.arange(rows) if problem.person is None else problem.person
    order = np.argsort(person, kind="stable")
    place = np.arange(rows) - np.searchsorted(person[order], person[order])
    kept = place < most
    owned = np.full((_rounded_up(persons_of(problem) + 1), most), -1, dtype=np.int32)
    owned[person[order][kept], place[kept]] = order[kept]
    absent = _rounded_up(rows + 1) - rows
    x = np.pad(np.asarray(problem.x, dtype=np.float64), ((0, absent), (0, 0)))
    return Table(x, np.pad(problem.rho, (0, absent)), np.pad(psi, (0, absent)), owned)


def initial_weights(perceptron: Perceptron, members: int) -> np.ndarray:
    """Public: the same for everybody. He's or Glorot's spread, zero biases, and a last layer of zeros."""
    rng = np.random.default_rng(0)
    weights = np.zeros((members, perceptron.parameters))
    gain = 2.0 if perceptron.activation == "relu" else 1.0
    for member in weights:
        for matrix, _ in list(perceptron.layers(member))[:-1]:
            matrix[:] = rng.normal(0.0, math.sqrt(gain / len(matrix)), matrix.shape)
    return weights


def clipped_sum(perceptron: Perceptron, loss: Loss, weights: Any, table: Table, batch: Any, clip: Any) -> Any:
    """Σₚ Gₚ·min(1, C/‖Gₚ‖) over the persons of a batch; one that is not finite counts as zero.

    Row i adds hᵢδᵢ' to a layer's matrix and δᵢ to its bias, where h enters the layer and δ is the derivative of ℓ
    in its sum. So no person's gradient is ever written out:
        ‖Gₚ‖² = Σ_layers Σ_{i,j of p} (δᵢ'δⱼ)(hᵢ'hⱼ + 1).
    """
    import jax
    import jax.numpy as jnp

    owned = table.owned[batch]
    rows = owned.ravel()
    x, rho, psi = table.x[rows], table.rho[rows], table.psi[rows]
    factors = jax.vmap(lambda member: _factors(perceptron, loss, member, x, rho, psi))(weights)
    by_person = [array.reshape(len(weights), *owned.shape, -1) for array in jax.tree.leaves(factors)]
    layers = list(zip(by_person[::2], by_person[1::2], strict=True))
    norm = jnp.sqrt(sum(_squared_norm(h, delta) for h, delta in layers))
    kept = jnp.where(jnp.isfinite(norm), clip / jnp.maximum(norm, clip), 0.0)[None, :, None, None]
    flat = []
    for h, delta in layers:
        h, delta = (jnp.where(kept > 0, array, 0.0) for array in (h, kept * delta))
        flat += [jnp.einsum("mpri,mpro->mio", h, delta).reshape(len(weights), -1), delta.sum(axis=(1, 2))]
    return jnp.concatenate(flat, axis=1)


def _squared_norm(h: Any, delta: Any) -> Any:
    """Of each person's gradient in one layer, all members together, with a hair more than rounding could hide."""
    import jax.numpy as jnp

    products = jnp.einsum("mpri,mpsi->mprs", delta, delta) * (jnp.einsum("mpri,mpsi->mprs", h, h) + 1)
    return products.sum(axis=(0, 2, 3)) + 1e-12 * jnp.abs(products).sum(axis=(0, 2, 3))


def _factors(perceptron: Perceptron, loss: Loss, weights: Any, x: Any, rho: Any, psi: Any) -> list[tuple[Any, Any]]:
    """(h, δ) of each layer, one row per row."""
    import jax
    import jax.numpy as jnp

    def total_loss(shifts: list[Any]) -> tuple[Any, list[Any]]:
        f, inputs = perceptron.trace(weights, x, shifts, jnp)
        each = rho * f**2 - 2 * psi * f if loss == "squared" else rho * jnp.logaddexp(0.0, f) - psi * f
        return each.sum(), inputs

    shifts = [jnp.zeros((len(x), outputs)) for _, outputs in perceptron.shapes]
    deltas, inputs = jax.grad(total_loss, has_aux=True)(shifts)
    return list(zip(inputs, deltas, strict=True))


@lru_cache(maxsize=64)
def _compiled(perceptron: Perceptron, loss: Loss) -> Callable[..., Any]:
    """All steps of a chunk as one scan; compiled once for each shape of table, batches and noise."""
    import jax

    adam = _adam()

    @jax.jit
    def scan(state: Any, table: Table, steps: Any, expected: Any, clip: Any) -> Any:
        def step(state: Any, inputs: Any) -> Any:
            (weights, moments), (batch, noise, rate) = state, inputs
            gradient = (clipped_sum(perceptron, loss, weights, table, batch, clip) + noise) / expected
            direction, moments = adam.update(gradient, moments)
            return (weights - rate * direction, moments), None

        return jax.lax.scan(step, state, steps)[0]

    return scan


def _adam() -> Any:
    import optax

    return optax.scale_by_adam()


def _chunks(sums: SampledSums, shape: tuple[int, ...]) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Equally long pieces of the training; the last is filled up with steps of nobody, without noise."""
    steps, size = len(sums.batches), math.prod(shape)
    length = min(math.ceil(steps / CHUNKS), max(1, int(CHUNK_BYTES / (8 * size))))
    for first in range(0, steps, length):
        batches = sums.batches[first : first + length]
        noise, missing = sums.noise(len(batches)), length - len(batches)
        width = _rounded_up(batches.shape[1], 16) - batches.shape[1]
        padded = np.pad(batches, ((0, missing), (0, width)), constant_values=-1)
        yield first, padded, np.pad(noise, ((0, missing), (0, 0))).reshape(length, *shape)


def _rounded_up(count: int, multiple: int = ROUND_UP) -> int:
    return -(-count // multiple) * multiple


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def require_jax() -> None:
    try:
        import jax
        import optax  # noqa: F401
    except ImportError:
        jax = None
    if jax is None:
        raise InputError("a network needs the extra: pip install 'dpcate[network]'")


def double_precision() -> Any:
    """64-bit arithmetic inside the context only: other users of jax in the process keep their setting."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()
