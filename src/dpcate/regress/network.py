"""Second stage by DP-SGD on the orthogonal loss: the release holds the weights, hence the complete function.

A private constant first, as in M1; then M networks f₁ … f_M learn what is left, on  g = offset + S·f,
    ℓᵢ(f) = (ρᵢ/r)·f² − 2(ψᵢ/(rS))·f,   ψ = ρφ − ρ·offset,
with r the typical ρ and S the plausible range of the effect, both public or released before. No row is divided by
its ρ. The members form one weight vector: one clip, one noise, one charge; the effect is their mean.
"""

import dataclasses
import math
from dataclasses import dataclass

from dpcate.errors import InputError
from dpcate.models.network import NetworkModel
from dpcate.privacy import Mechanisms
from dpcate.regress.dpsgd import DPSGD, Progress
from dpcate.regress.features import budget_shares, score_moments
from dpcate.regress.offset import private_offset
from dpcate.regress.problem import Problem

STEPS = 10.0  # of training, in units of √(nμ)
MISFIT = 0.33  # sd of what a network fails to learn, in units of S·(nμ)^(−1/4)
FREEDOM = 6.0  # how many constants' worth of sampling noise a trained network carries


@dataclass(frozen=True, kw_only=True)
class Network:
    """Settings of the network stage: two hidden layers of 32, tanh, as in the paper."""

    hidden: tuple[int, ...] = (32, 32)
    activation: str = "tanh"
    epochs: float | None = None
    batch: int = 128
    learning_rate: float = 0.03
    clip: float = 1.0
    members: int = 4

    name = "network"

    def __post_init__(self) -> None:
        self._trainer(1.0, 1.0)
        if self.members < 2:
            raise InputError("members must be at least 2: their spread is what intervals are made of")

    def fit(
        self,
        problem: Problem,
        mechanisms: Mechanisms,
        mu: float,
        name: str,
        *,
        interval: bool = True,
        progress: Progress | None = None,
    ) -> NetworkModel:
        """Constant and interval from their shares of μ; the training takes what the accountant has left then."""
        signal = problem.signal(mu)
        trainer, shares = self._trainer(problem.n, signal), budget_shares(signal, interval)
        offset = private_offset(problem, mechanisms, shares.mu("offset", mu), name)
        psi, typical = problem.scores(offset.value), problem.curvature
        sampling_sd = 0.0
        if interval:
            bound = min(3 * offset.score_scale, problem.score_limit)
            variance, curvature = score_moments(problem, mechanisms, psi, bound, shares.mu("interval", mu), name)
            sampling_sd = math.sqrt(FREEDOM * variance / problem.n) / curvature
        scale = min(problem.span, 4 * offset.score_scale / typical)
        training = trainer.rest(problem, mechanisms)
        slope = problem.score_limit / (typical * scale)
        factor = trainer.unclipped(slope, problem.x.shape[1]) if problem.two_valued else 1.0
        scaled = dataclasses.replace(problem, rho=factor * problem.rho / typical)
        members = trainer.train(
            scaled, factor * psi / (typical * scale), "squared", mechanisms, training, name, progress
        )
        return NetworkModel(
            sizes=list(trainer.perceptron(problem.x.shape[1]).sizes),
            activation=self.activation,
            members=members.tolist(),
            offset=offset.value,
            offset_sd=offset.sd,
            scale=scale,
            sampling_sd=sampling_sd,
            misfit_sd=MISFIT * scale * signal**-0.25 if interval else 0.0,
        )

    def _trainer(self, n: float, signal: float) -> DPSGD:
        """Noise per step grows with the root of their number, so a small budget buys few: 10·√(nμ) by default."""
        steps = STEPS * math.sqrt(signal)
        epochs = self.epochs or max(1.0, steps) / math.ceil(n / self.batch)
        return DPSGD(**{**dataclasses.asdict(self), "epochs": epochs})
