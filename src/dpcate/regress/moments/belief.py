"""From noisy observations of coefficients to a belief about them: spike-and-slab Bayes, functions of released numbers.

Prior: each column (and each pair of columns) matters or not; if it does, its terms are normal with a variance that
falls with their degree. How large effects are and how many columns matter is not known: a small grid of both is
averaged over by its evidence, so heterogeneity is claimed only where the releases show it.

A round t observes  h_t = step_t + G·θ_t  of  G·θ,  G being the second moment of the basis: the identity, but for terms
whose second moment was released. Within those, the posterior is found by expectation propagation.
"""

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np

from dpcate.models.basis import Term

DECAY = 2.5  # a term of degree k has k^−2.5 of its line's variance
PAIR_SIZE = 0.25  # of the variance of single terms
PAIRS_THAT_MATTER = 0.5  # relative to columns
PROPAGATIONS = 6
FEW = 3.0  # columns that matter, up to which each may have the full size
UNSEEN = 1e30  # the variance of what was not observed


@dataclass(frozen=True)
class Prior:
    """Public numbers and released scales; `centre` and `variance` are those of the constant."""

    centre: float
    variance: float
    sizes: np.ndarray
    columns: np.ndarray
    width: int

    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Every size of a column's line with every chance that a column matters: the more do, the less each does."""
        columns = np.minimum(self.columns, self.width / 2)
        size = np.outer(self.sizes, np.minimum(1.0, np.sqrt(FEW / columns)))
        return size.ravel(), np.tile(columns / self.width, len(self.sizes))


@dataclass(frozen=True)
class Observation:
    """A round's steps, the coefficients they start from, and the precision of each."""

    step: np.ndarray
    start: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True)
class Gram:
    """The released second moment of some terms."""

    chosen: np.ndarray
    matrix: np.ndarray

    def times(self, vector: np.ndarray) -> np.ndarray:
        out = vector.copy()
        out[self.chosen] = self.matrix @ vector[self.chosen]
        return out


@dataclass(frozen=True)
class Belief:
    """Mean and variance of each coefficient, correlations within the Gram's terms, and what matters."""

    mean: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray | None
    matters: dict[tuple[int, ...], float]


@dataclass(frozen=True)
class Evidence:
    """All that has been observed of one function."""

    prior: Prior
    observations: tuple[Observation, ...] = ()
    gram: Gram | None = None

    def and_also(self, observation: Observation) -> "Evidence":
        return dataclasses.replace(self, observations=(*self.observations, observation))

    def belief(self, terms: tuple[Term, ...], sampling: float) -> Belief:
        """The posterior; `sampling` is the variance that the rows themselves leave in a coefficient, once."""
        size = len(terms)
        precision, weighted = np.zeros(size), np.zeros(size)
        for seen in self.observations:
            known = slice(len(seen.step))
            start = np.zeros(size)
            start[known] = seen.start
            precision[known] += seen.precision
            weighted[known] += seen.precision * (seen.step + (self.gram.times(start) if self.gram else start)[known])
        on = precision > 0
        noise = np.where(on, 1 / np.maximum(precision, 1 / UNSEEN), UNSEEN)
        observed = np.where(on, weighted * noise, 0.0)
        if self.gram is None:
            return _posterior(observed, noise + sampling, terms, self.prior)
        return _propagated(observed, noise, sampling, terms, self.prior, self.gram)


@dataclass(frozen=True)
class _Layout:
    """Which terms share a fate, and each term's part of its line's variance."""

    groups: list[tuple[int, ...]]
    member: np.ndarray
    pair: np.ndarray
    shape: np.ndarray
    constant: np.ndarray


@functools.lru_cache(maxsize=64)
def _layout(terms: tuple[Term, ...]) -> _Layout:
    keys = [tuple(column for column, _ in term) for term in terms]
    groups = sorted({key for key in keys if key}, key=lambda key: (len(key), key))
    number = {key: position for position, key in enumerate(groups)}
    member = np.zeros((len(terms), len(groups)))
    for row, key in enumerate(keys):
        if key:
            member[row, number[key]] = 1.0
    degrees = np.array([np.prod([degree for _, degree in term]) if term else 1.0 for term in terms])
    shape = degrees**-DECAY * np.array([PAIR_SIZE if len(term) > 1 else 1.0 for term in terms])
    return _Layout(
        groups=groups,
        member=member,
        pair=np.array([len(key) > 1 for key in groups], dtype=bool),
        shape=shape,
        constant=np.array([not key for key in keys]),
    )


def _posterior(observed: np.ndarray, noise: np.ndarray, terms: tuple[Term, ...], prior: Prior) -> Belief:
    """Independent observations: exact, by averaging over the grid of sizes and numbers of columns."""
    layout = _layout(terms)
    constant = layout.constant
    centred = observed - np.where(constant, prior.centre, 0.0)
    size, likely = prior.grid()
    slab = np.where(constant, prior.variance, size[:, None] ** 2 * layout.shape)
    ratio = slab / noise
    evidence = 0.5 * (centred**2 / noise * ratio / (1 + ratio) - np.log1p(ratio))
    likely = likely[:, None] * np.where(layout.pair, PAIRS_THAT_MATTER, 1.0)
    log_odds = np.log(likely / (1 - likely)) + evidence @ layout.member
    weight = (np.log1p(-likely) + np.logaddexp(0, log_odds)).sum(axis=1)
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    included = weight[:, None] / (1 + np.exp(-np.clip(log_odds, -30, 30)))
    share = np.where(constant, weight[:, None], included @ layout.member.T)
    mean = centred * ratio / (1 + ratio)
    first = (share * mean).sum(axis=0)
    second = (share * (slab / (1 + ratio) + mean**2)).sum(axis=0)
    matters = dict(zip(layout.groups, included.sum(axis=0).tolist(), strict=True))
    variance = np.maximum(second - first**2, 1e-14)
    return Belief(first + np.where(constant, prior.centre, 0.0), variance, None, matters)


def _propagated(
    observed: np.ndarray, noise: np.ndarray, sampling: float, terms: tuple[Term, ...], prior: Prior, gram: Gram
) -> Belief:
    """Correlated terms: each sees the others through a normal stand-in for their posterior, a few times over."""
    chosen, matrix = gram.chosen, gram.matrix
    cavity_mean, cavity_noise = observed.copy(), noise + sampling
    belief = _posterior(cavity_mean, cavity_noise, terms, prior)
    weighing = matrix @ np.linalg.inv(np.diag(noise[chosen]) + sampling * matrix)
    information, pull = weighing @ matrix, weighing @ observed[chosen]
    site, site_pull = _site(belief, cavity_mean, cavity_noise, chosen)
    for _ in range(PROPAGATIONS):
        covariance = np.linalg.inv(information + np.diag(site))
        spread, mean = np.diag(covariance), covariance @ (pull + site_pull)
        precision = np.maximum(1 / spread - site, 1e-8)
        cavity_noise[chosen] = 1 / precision
        cavity_mean[chosen] = (mean / spread - site_pull) / precision
        belief = _posterior(cavity_mean, cavity_noise, terms, prior)
        new_site, new_pull = _site(belief, cavity_mean, cavity_noise, chosen)
        site, site_pull = np.sqrt(site * new_site), (site_pull + new_pull) / 2
    correlation = covariance / np.sqrt(np.outer(spread, spread))
    return dataclasses.replace(belief, correlation=correlation)


def _site(belief: Belief, mean: np.ndarray, noise: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the prior adds to a cavity, as precision and precision times mean."""
    precision = 1 / belief.variance[chosen] - 1 / noise[chosen]
    pull = belief.mean[chosen] / belief.variance[chosen] - mean[chosen] / noise[chosen]
    return np.maximum(precision, 1e-9), np.where(precision > 1e-9, pull, 0.0)
