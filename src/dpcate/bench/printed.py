"""The paper's experiments as printed: its learners, its noise, its nuisances. Nothing here is private.

Nuisances are scikit-learn's perceptrons with the paper's settings (one hidden layer of 32, Adam at 0.01, batches of
128), trained without noise on one half of the rows; the second stage takes the other half. γ is searched by one
L-BFGS-B run per arm and end of the outcome's range, as in the paper; it does not depend on ε, so one search serves all
budgets.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lu_solve
from sklearn.neural_network import MLPClassifier, MLPRegressor

from dpcate.bench.encoded import encoded
from dpcate.data import Rows, Split, read_rows, split_rows
from dpcate.datasets import Dataset
from dpcate.encoding import reference_points
from dpcate.errors import DataError
from dpcate.models.kernels import gram
from dpcate.nuisance import FittedNuisances
from dpcate.orthogonal import Learner, learner_named
from dpcate.paper import PaperFeatures, PaperKernel, PaperNetwork, paper_function
from dpcate.paper.formulas import kernel_diagonal, theorem_1_factor
from dpcate.paper.gross_error import gross_error_sensitivity
from dpcate.paper.kernel_ridge import KernelRidge
from dpcate.paper.network import SmoothNetwork
from dpcate.privacy import Accountant, Budget, Declared, Mechanisms, noise_source
from dpcate.regress import MOST_ROWS, Problem

FLOOR = 0.05  # the library's default for propensities
MLP = {"hidden_layer_sizes": (32,), "learning_rate_init": 0.01, "batch_size": 128}
SEARCHED_COLUMNS = (
    100  # beyond, the slope of γ is too long to be taken by differences: public points and rows are tried
)


@dataclass(frozen=True, repr=False)
class SecondHalf:
    """What the paper's second stage is given."""

    schema: Any
    learner: Learner
    nuisances: FittedNuisances
    problem: Problem

    @classmethod
    def of(cls, data: Dataset, learner: str, seed: int) -> "SecondHalf":
        rows, weights = read_rows(data.schema, data.Y, data.T, data.X), learner_named(learner)
        half = split_rows(rows, Split("disjoint"), "replace-one")
        nuisances = _nuisances(data, rows, np.flatnonzero((half == 0) & rows.present), weights.needs, seed)
        chosen = np.flatnonzero((half == 1) & rows.present)
        pair = weights.pair(rows.treated[chosen], rows.outcome[chosen], rows.x[chosen], nuisances)
        problem = Problem(
            x=rows.x[chosen],
            rho=pair.rho,
            rho_phi=pair.rho_phi,
            reference=reference_points(data.schema),
            n=len(chosen),
            span=data.schema.outcome.range,
            curvature=weights.curvature(),
            multiplier=weights.multiplier,
            two_valued=data.schema.outcome.binary,
            neighbours="replace-one",
            rows_per_person=1,
            part=None,
        )
        return cls(data.schema, weights, nuisances, problem)

    def score(self, x: np.ndarray, a: float, y: float, g: np.ndarray) -> np.ndarray:
        pair = self.learner.pair(np.full(len(x), a), np.full(len(x), y), x, self.nuisances)
        return pair.rho_phi - pair.rho * g


class PrintedFinite:
    """Theorem 1: effects at declared points, each with noise of its own, scaled by γ."""

    def __init__(self, stage: PaperKernel | PaperNetwork, half: SecondHalf, points: Any) -> None:
        if half.problem.n > MOST_ROWS:
            raise DataError(
                f"as printed it needs all pairs of rows (kernel) or a Hessian over all of them (network): more than "
                f"{MOST_ROWS:,} rows do not fit"
            )
        queries = encoded(half.schema, points)
        fitted, self._n = stage.fit(half.problem), half.problem.n
        self._gamma = _gamma(AtQueries(fitted, queries), queries, half)
        self.original, self._name = fitted.value(queries), stage.name

    def __repr__(self) -> str:
        return "<PrintedFinite: sealed>"

    def effect(self, epsilon: float, delta: float, seed: int | None) -> np.ndarray:
        return _mechanisms(epsilon, delta, seed).unproven(
            f"effect: paper's Theorem 1, {self._name}",
            self.original,
            sd=self._gamma * theorem_1_factor(epsilon, delta, self._n),
            claim=Declared(epsilon / 2, delta / 2),
        )


class PrintedFunctional:
    """Theorem 3: the whole function; its learner without noise is the exact kernel that the features approximate."""

    def __init__(self, half: SecondHalf, points: Any) -> None:
        self._problem, self._queries, self._stage = half.problem, encoded(half.schema, points), PaperFeatures()

    def __repr__(self) -> str:
        return "<PrintedFunctional: sealed>"

    @property
    def original(self) -> np.ndarray:
        problem, h = self._problem, self._stage.bandwidth
        penalty = self._stage.penalty / kernel_diagonal(h, problem.x.shape[1])
        ridge = KernelRidge.fit(problem.x, problem.rho, problem.rho_phi, bandwidth=h, penalty=penalty, n=problem.n)
        return ridge.value(self._queries)

    def effect(self, epsilon: float, delta: float, seed: int | None) -> np.ndarray:
        mechanisms = _mechanisms(epsilon, delta, seed)
        model = paper_function(self._stage, self._problem, mechanisms, epsilon=epsilon, delta=delta)
        return model.value(self._queries)


def printed(kind: str, data: Dataset, points: Any, seed: int, learner: str = "r") -> PrintedFinite | PrintedFunctional:
    return printed_from(kind, SecondHalf.of(data, learner, seed), points)


def printed_from(kind: str, half: SecondHalf, points: Any) -> PrintedFinite | PrintedFunctional:
    """`kind` is "kernel", "network" or "functional"."""
    if kind == "functional":
        return PrintedFunctional(half, points)
    return PrintedFinite({"kernel": PaperKernel, "network": PaperNetwork}[kind](), half, points)


class AtQueries:
    """A fitted second stage whose h(z) = (A⁻¹k_z)(queries) has the queries' side solved once: z costs a product."""

    def __init__(self, fitted: KernelRidge | SmoothNetwork, queries: np.ndarray) -> None:
        self._fitted, self.value = fitted, fitted.value
        if isinstance(fitted, KernelRidge):
            pulled = lu_solve(fitted.factor, gram("gaussian", fitted.bandwidth, fitted.x, queries), trans=1)
            self._solved = pulled.T * fitted.rho
        else:
            self._solved = 2 * np.linalg.solve(fitted.hessian, fitted.jacobian(queries).T).T

    def inverse_at(self, queries: np.ndarray, z: np.ndarray) -> np.ndarray:
        fitted = self._fitted
        if isinstance(fitted, KernelRidge):
            direct = gram("gaussian", fitted.bandwidth, queries, z)
            return (direct - self._solved @ gram("gaussian", fitted.bandwidth, fitted.x, z)) / fitted.penalty
        return self._solved @ fitted.jacobian(z).T


def _nuisances(data: Dataset, rows: Rows, chosen: np.ndarray, needs: tuple[str, ...], seed: int) -> FittedNuisances:
    """At the paper's settings, whatever scikit-learn thinks of their number of epochs."""
    x, treated, outcome = rows.x[chosen], rows.treated[chosen], rows.outcome[chosen]
    arms = {"outcome": treated >= 0, "outcome_control": treated == 0, "outcome_treated": treated == 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        propensity = MLPClassifier(random_state=seed, **MLP).fit(x, treated)
        models = {
            target: MLPRegressor(random_state=seed, **MLP).fit(x[arms[target]], outcome[arms[target]])
            for target in needs
            if target != "propensity"
        }
    predictors = {target: model.predict for target, model in models.items()}
    return FittedNuisances(
        data.schema, FLOOR, {**predictors, "propensity": lambda at: propensity.predict_proba(at)[:, 1]}
    )


def _gamma(fitted: AtQueries, queries: np.ndarray, half: SecondHalf) -> float:
    """The largest influence found: a lower bound of the supremum, as in the paper."""
    ends = (half.schema.outcome.low, half.schema.outcome.high)
    if queries.shape[1] <= SEARCHED_COLUMNS:
        return gross_error_sensitivity(fitted, queries, half.score, ends, starts=1)
    z = np.vstack([half.problem.reference, half.problem.x])
    norms = np.linalg.norm(fitted.inverse_at(queries, z), axis=0)
    return max(float((norms * np.abs(half.score(z, a, y, fitted.value(z)))).max()) for a in (0.0, 1.0) for y in ends)


def _mechanisms(epsilon: float, delta: float, seed: int | None) -> Mechanisms:
    return Mechanisms(Accountant(Budget(epsilon=epsilon, delta=delta)), noise_source(seed))
