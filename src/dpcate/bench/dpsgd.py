"""How long DP-SGD takes, next to opacus: the same network, rows, batches, epochs and noise, on one thread.

1350 rows of 30 columns, one hidden layer of 32 rectified units, batches of 128, 50 epochs, Adam at 0.01. Both are
trained once before the clock starts, so that compilation and imports are not in it.
"""

from collections.abc import Callable

import numpy as np

from dpcate.bench.speed import Timing, seconds_of
from dpcate.extras import require
from dpcate.privacy import Accountant, Budget, Mechanisms, SampledGaussian, noise_source
from dpcate.regress import DPSGD, Problem

ROWS, WIDTH, HIDDEN, BATCH, EPOCHS, NOISE_MULTIPLIER = 1350, 30, 32, 128, 50, 4.0


def compare_with_opacus() -> list[Timing]:
    """Seconds of one training each, noise and sampling included; ours with secure noise, opacus with its default."""
    rng = np.random.default_rng(0)
    x = rng.random((ROWS, WIDTH))
    y = np.sin(3 * x[:, 0]) + rng.normal(0, 0.1, ROWS)
    ours, theirs = _ours(x, y), _opacus(x, y)
    ours(), theirs()
    seconds, their_seconds = seconds_of(ours), seconds_of(theirs)
    return [Timing("dpcate", seconds, 1.0), Timing("opacus", their_seconds, their_seconds / seconds)]


def _ours(x: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    trainer = DPSGD(hidden=(HIDDEN,), activation="relu", epochs=EPOCHS, batch=BATCH)
    training = SampledGaussian(NOISE_MULTIPLIER, trainer.sampling_rate(ROWS), trainer.steps(ROWS))
    problem = Problem(
        x=x,
        rho=np.ones(ROWS),
        rho_phi=y,
        reference=x[:1],
        n=ROWS,
        span=2.0,
        curvature=1.0,
        multiplier=1.0,
        two_valued=False,
        neighbours="add-or-remove-one",
        rows_per_person=1,
        part=None,
    )

    def train() -> object:
        budget = Budget(epsilon=50.0, delta=1e-5, neighbours="add-or-remove-one")
        mechanisms = Mechanisms(Accountant(budget), noise_source(None))
        return trainer.train(problem, y, "squared", mechanisms, training, "benchmark")

    return train


def _opacus(x: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    engine, torch = require("opacus", "opacus").PrivacyEngine, require("torch", "opacus")
    torch.set_num_threads(1)
    rows = torch.utils.data.TensorDataset(torch.tensor(x).float(), torch.tensor(y).float()[:, None])

    def train() -> object:
        network = torch.nn.Sequential(torch.nn.Linear(WIDTH, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))
        network, optimizer, loader = engine().make_private(
            module=network,
            optimizer=torch.optim.Adam(network.parameters(), lr=0.01),
            data_loader=torch.utils.data.DataLoader(rows, batch_size=BATCH),
            noise_multiplier=NOISE_MULTIPLIER,
            max_grad_norm=1.0,
        )
        for _ in range(EPOCHS):
            for inputs, targets in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(network(inputs), targets).backward()
                optimizer.step()
        return network

    return train
