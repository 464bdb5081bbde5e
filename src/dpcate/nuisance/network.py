"""Nuisances by DP-SGD, as in the paper: one hidden layer of 32 rectified units, Adam at 0.01, batches of 128.

The outcome is fitted by squared loss on the scale of its public range, the propensity by logistic loss. All of a
stage's networks are trained with the same noise, the least for which their composition is within the stage's μ.
Losses of two-valued targets are scaled by a public factor so that the clip does not bend them.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from dpcate.nuisance.first_stage import FirstFit, Predictor
from dpcate.nuisance.targets import TrainingRows, centre_of
from dpcate.privacy import Mechanisms, SampledGaussian
from dpcate.regress import DPSGD


@dataclass(frozen=True, kw_only=True)
class NetworkNuisance:
    """Every nuisance by a network of its own."""

    hidden: tuple[int, ...] = (32,)
    activation: str = "relu"
    epochs: float = 50
    batch: int = 128
    learning_rate: float = 0.01
    clip: float = 1.0

    name = "network"

    def __post_init__(self) -> None:
        self._trainer()

    def paid(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        return needs

    def fit(self, training: TrainingRows, needs: tuple[str, ...], mechanisms: Mechanisms, mu: float) -> FirstFit:
        trainer = self._trainer()
        each = trainer.affordable(training.problem(needs[0]), mechanisms, mu, times=len(needs)) if needs else None
        return FirstFit({target: _predictor(trainer, training, target, mechanisms, each) for target in needs})

    def _trainer(self) -> DPSGD:
        return DPSGD(**dataclasses.asdict(self))


def _predictor(
    trainer: DPSGD, training: TrainingRows, target: str, mechanisms: Mechanisms, each: SampledGaussian
) -> Predictor:
    """π(x) = 1/(1 + exp(−f(x))), or the centre of the outcome's range plus f(x) times half its width."""
    problem = training.problem(target)
    label = target if training.part is None else f"{target} on part {training.part + 1}"
    network = trainer.perceptron(problem.x.shape[1])

    def trained(psi: np.ndarray, loss: str, slope: float) -> np.ndarray:
        factor = trainer.unclipped(slope, problem.x.shape[1]) if problem.two_valued else 1.0
        scaled = dataclasses.replace(problem, rho=factor * problem.rho)
        return trainer.train(scaled, factor * psi, loss, mechanisms, each, label)[0]

    if target == "propensity":
        weights = trained(problem.rho_phi + problem.rho / 2, "logistic", 1.0)
        return lambda x: 1 / (1 + np.exp(-np.clip(network.output(weights, x), -30, 30)))
    centre, half = centre_of(training.schema, target), problem.span / 2
    weights = trained(problem.rho_phi / half, "squared", 4.0)
    return lambda x: centre + half * network.output(weights, x)
