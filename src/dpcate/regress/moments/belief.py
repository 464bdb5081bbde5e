"""From noisy observations of coefficients to a belief about them: spike-and-slab Bayes, functions of released numbers.

Prior: each column (and each pair of columns) matters or not; if it does, its terms are normal with a variance that
falls with their degree by one of three laws: slowly, as for functions with jumps; late, as for waves; or fast, as for
gentle curves. How large effects are and how many columns matter is not known: a small grid of both is averaged over by
its evidence, so heterogeneity is claimed only where the releases show it. What changes the effect mostly changes the
outcome too (E[Y|x] holds a part of it): columns that were found to matter to the outcome are favoured in the effect.

A round t observes  h_t = step_t + G·θ_t  of  G·θ,  G being the second moment of the basis: the identity, but for terms
whose second moment was released. Within those, the posterior is found by expectation propagation.

The constant stands apart: how large an average is, is not known either and averaged over; and where columns are not
quite centred it was seen together with what the terms were then, so that it gets stale as they move.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gamma, zeta

from dpcate.models.basis import Term

JUMPS, GENTLE = 2.0, 0.12  # a term of degree k has k^−2, 4^(k−1)/k!² or 0.12^(k−1) of its line's variance
LAWS = np.array([0.45, 0.05, 0.5])  # how likely jumps, waves and gentle curves are
PAIR_SIZE = 0.25  # of the variance of single terms
PAIRS_THAT_MATTER = 0.5  # relative to columns
PROPAGATIONS, SETTLED = 6, 0.1  # at most so many; a change of so many sds is none
UNRELATED = 0.07  # the odds that a column matters to the effect if it does not to the outcome, over those if it does
FEW = 3.0  # columns that matter, up to which each may have the full size
UNSEEN = 1e30  # the variance of what was not observed


@dataclass(frozen=True, eq=False)
class Prior:
    """Public numbers and released scales; `centre` and `variance` are those of the constant, of which there may be
    several variances, each as likely as the others."""

    centre: float
    variance: float | np.ndarray
    sizes: np.ndarray
    columns: np.ndarray
    width: int

    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Every size of a column's line with every chance that a column matters: the more do, the less each does."""
        columns = np.unique(np.minimum(self.columns, self.width / 2))
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

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """The second moment times each of the vectors in the last axis."""
        out = vectors.copy()
        out[..., self.chosen] = vectors[..., self.chosen] @ self.matrix
        return out


@dataclass(frozen=True)
class Joint:
    """Terms of a Gram that were looked at, and the covariance of their coefficients but for the prior's shrinkage."""

    terms: np.ndarray
    covariance: np.ndarray

    @property
    def correlation(self) -> np.ndarray:
        spread = self.covariance.diagonal()
        return self.covariance / np.sqrt(np.outer(spread, spread))


@dataclass(frozen=True)
class Belief:
    """Mean and variance of each coefficient, which are independent but for the joint ones; by law, point of the prior's
    grid and group, the chance that the group matters so."""

    mean: np.ndarray
    variance: np.ndarray
    chance: np.ndarray
    slabs: "_Slabs"
    joint: Joint | None = None

    @property
    def by_group(self) -> np.ndarray:
        """The chance that a group matters: all columns in order, then pairs of them."""
        return self.chance.sum(axis=(0, 1))

    @property
    def matters(self) -> dict[tuple[int, ...], float]:
        """The chance that a column, or a pair of columns, matters."""
        return dict(zip(self.slabs.layout.groups, self.by_group.tolist(), strict=True))

    @property
    def columns(self) -> float:
        """How many columns seem to matter."""
        return sum(chance for group, chance in self.matters.items() if len(group) == 1)

    @property
    def likely(self) -> np.ndarray:
        """By term, how much its variance counts for a quantile: hardly at all if its column hardly seems to matter."""
        matters = self.by_group
        sharper = matters**2 / (matters**2 + (1 - matters) ** 2)
        member = self.slabs.layout.member
        return np.where(member.any(axis=1), member @ sharper, 1.0)

    def beyond(self, weight: np.ndarray) -> float:
        """What degrees beyond the terms add to a variance, each column's times its weight; an unlikely law matters less
        to a quantile than to a variance."""
        law = np.maximum(self.chance.sum(axis=1), 1e-300)
        tail = (self.chance * self.slabs.line).sum(axis=1) / law * self.slabs.layout.beyond
        sharper = law**2 / (law**2).sum(axis=0)
        by_group = np.array([weight[list(group)].mean() for group in self.slabs.layout.groups])
        return float((by_group * law.sum(axis=0) * (sharper * tail).sum(axis=0)).sum())


@dataclass(frozen=True)
class Evidence:
    """All that has been observed of one function; by column, what `favour` adds to the log-odds that it matters;
    `unresolved` is the variance of what is wrong with the constant however often it is looked at."""

    prior: Prior
    observations: tuple[Observation, ...] = ()
    gram: Gram | None = None
    favour: np.ndarray | None = None
    unresolved: float = 0.0

    def and_also(self, observation: Observation) -> "Evidence":
        return dataclasses.replace(self, observations=(*self.observations, observation))

    def favouring(self, outcome: Belief) -> "Evidence":
        """With columns favoured as they matter to the outcome; how many matter in all, the prior still says."""
        odds = UNRELATED + (1 - UNRELATED) * outcome.by_group[: self.prior.width]
        return dataclasses.replace(self, favour=np.log(odds / odds.mean()))

    def belief(self, terms: tuple[Term, ...], sampling: float, mean_error: float = 0.0) -> Belief:
        """The posterior; `sampling` is the variance that the rows themselves leave in a coefficient, once, `mean_error`
        how far the terms' means may be from zero."""
        step, start, precisions = np.zeros((3, len(self.observations), len(terms)))
        for row, seen in enumerate(self.observations):
            known = len(seen.step)
            step[row, :known], start[row, :known], precisions[row, :known] = seen.step, seen.start, seen.precision
        observed, noise = _combined(step + (self.gram.times(start) if self.gram else start), precisions)
        slabs = _slabs(terms, self.prior)
        odds, joint = slabs.odds(self.favour), None
        if self.gram is None:
            mean, variance, chance = slabs.posterior(observed, noise + sampling, odds)
        else:
            (mean, variance, chance), joint = _propagated(observed, noise, sampling, slabs, odds, self.gram)
        stale = mean_error**2 * ((start - mean)[:, 1:] ** 2).sum(axis=1)
        fresh = precisions[:, 0] / (1 + precisions[:, 0] * stale)
        seen, noise = _combined((step + start)[:, 0], fresh)
        mean[0], variance[0] = self._constant(float(seen), float(noise) + sampling + self.unresolved)
        return Belief(mean, variance, chance, slabs, joint)

    def _constant(self, seen: float, noise: float) -> tuple[float, float]:
        """Its posterior mean and variance, averaged over how large it may be by the evidence."""
        ratio = np.atleast_1d(self.prior.variance) / noise
        gain, square = ratio / (1 + ratio), (seen - self.prior.centre) ** 2
        weight = 0.5 * (square / noise * gain - np.log1p(ratio))
        weight = np.exp(weight - weight.max())
        weight /= weight.sum()
        kept, twice = weight @ gain, weight @ gain**2
        return self.prior.centre + kept * (seen - self.prior.centre), noise * kept + square * (twice - kept**2)


def _combined(observed: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weighted mean over rounds, and its variance; zero, and `UNSEEN`, where nothing was seen."""
    noise = 1 / np.maximum(precision.sum(axis=0), 1 / UNSEEN)
    return (precision * observed).sum(axis=0) * noise, noise


@dataclass(frozen=True)
class _Layout:
    """Which terms share a fate; by law, each term's part of its line's variance, and what lies beyond the terms."""

    groups: list[tuple[int, ...]]
    member: np.ndarray
    pair: np.ndarray
    shape: np.ndarray
    beyond: np.ndarray


@functools.lru_cache(maxsize=64)
def _layout(terms: tuple[Term, ...]) -> _Layout:
    """The first term is the constant, which is in no group. A column of one degree has two values, hence no others."""
    keys = [tuple(column for column, _ in term) for term in terms]
    groups = sorted({key for key in keys if key}, key=lambda key: (len(key), key))
    number = {key: position for position, key in enumerate(groups)}
    member = np.zeros((len(terms), len(groups)))
    for row, key in enumerate(keys):
        if key:
            member[row, number[key]] = 1.0
    degrees = np.array([math.prod(degree for _, degree in term) for term in terms], dtype=float)
    sizes = np.array([PAIR_SIZE if len(term) > 1 else 1.0 for term in terms])
    pair, highest = np.array([len(key) > 1 for key in groups], dtype=bool), (member * degrees[:, None]).max(axis=0)
    return _Layout(
        groups=groups,
        member=member,
        pair=pair,
        shape=sizes * falling(degrees),
        beyond=np.where(pair | (highest == 1), 0.0, fallen(highest)),
    )


def falling(degree: np.ndarray) -> np.ndarray:
    """By law, the variance of terms of a degree relative to the line's: of jumps, of waves, of gentle curves."""
    waves = 4.0 ** (degree - 1) / gamma(degree + 1) ** 2
    return np.array([degree**-JUMPS, waves, GENTLE ** (degree - 1)])


def fallen(degree: np.ndarray) -> np.ndarray:
    """The sums of `falling` over all higher degrees."""
    waves = sum(falling(degree + more)[1] for more in range(1, 20))
    return np.array([zeta(JUMPS, degree + 1), waves, GENTLE**degree / (1 - GENTLE)])


class _Odds(NamedTuple):
    """By law, point of the grid and group, the logarithm of the odds that the group matters so; of all laws together,
    that of one over the chance that it does not."""

    log: np.ndarray
    either: np.ndarray


class _Marginals(NamedTuple):
    """Mean and variance of each term's posterior, and the chances of the groups."""

    mean: np.ndarray
    variance: np.ndarray
    chance: np.ndarray


class _Slabs:
    """The prior of given terms by law and at every point of its grid; the posterior under independent observations."""

    def __init__(self, terms: tuple[Term, ...], prior: Prior) -> None:
        self.layout = _layout(terms)
        size, likely = prior.grid()
        self.line = size[:, None] ** 2
        self._variance = (self.line * self.layout.shape[:, None]).reshape(-1, len(terms))  # laws and grid in one axis
        likely = likely[:, None] * np.where(self.layout.pair, PAIRS_THAT_MATTER, 1.0)
        log_odds = np.log(LAWS[:, None, None] * likely / (1 - likely))
        self._odds = _Odds(log_odds, _log_either(log_odds))
        self._averaged = np.zeros((len(self.layout.groups), prior.width))
        for row, group in zip(self._averaged, self.layout.groups, strict=True):
            row[list(group)] = 1 / len(group)

    def odds(self, favour: np.ndarray | None) -> _Odds:
        """Before any observation; columns may be favoured, pairs as their columns are on the average."""
        if favour is None:
            return self._odds
        log_odds = self._odds.log + self._averaged @ favour
        return _Odds(log_odds, _log_either(log_odds))

    def posterior(self, observed: np.ndarray, noise: np.ndarray, odds: _Odds) -> _Marginals:
        """Exact, by averaging over the grid of sizes and numbers of columns, and over each column's laws; of the
        constant it says nothing."""
        member, square = self.layout.member, observed**2
        ratio = self._variance / noise
        gain = ratio / (1 + ratio)
        evidence = (0.5 * (square / noise * gain - np.log1p(ratio))) @ member
        log_odds = odds.log + evidence.reshape(odds.log.shape)
        log_either = _log_either(log_odds)
        weight = (log_either - odds.either).sum(axis=1)
        weight = np.exp(weight - weight.max())
        weight /= weight.sum()
        included = weight[:, None] * np.exp(log_odds - log_either)
        shrunk = included.reshape(len(gain), -1) @ member.T * gain
        kept, twice = shrunk.sum(axis=0), (shrunk * gain).sum(axis=0)
        variance = np.maximum(noise * kept + square * (twice - kept**2), 1e-14)
        return _Marginals(observed * kept, variance, included)


def _log_either(log_odds: np.ndarray) -> np.ndarray:
    """log(1 + the odds of all laws together)."""
    return np.logaddexp(0, np.logaddexp.reduce(log_odds, axis=0))


@functools.lru_cache(maxsize=8)
def _slabs(terms: tuple[Term, ...], prior: Prior) -> _Slabs:
    """Rounds ask for the same ones again and again."""
    return _Slabs(terms, prior)


def _propagated(
    observed: np.ndarray, noise: np.ndarray, sampling: float, slabs: _Slabs, odds: _Odds, gram: Gram
) -> tuple[_Marginals, Joint]:
    """Correlated terms: each sees the others through a normal stand-in for their posterior, until that settles.

    Terms that no round has looked at keep their prior: what others say of them is too little to settle.
    """
    seen = np.flatnonzero(noise[gram.chosen] < UNSEEN)
    chosen, matrix = gram.chosen[seen], gram.matrix[seen][:, seen]
    cavity_mean, cavity_noise = observed.copy(), noise + sampling
    found = slabs.posterior(cavity_mean, cavity_noise, odds)
    weighing = matrix @ np.linalg.inv(_with_diagonal(sampling * matrix, noise[chosen]))
    information, pull = weighing @ matrix, weighing @ observed[chosen]
    site, site_pull = _site(found, cavity_mean, cavity_noise, chosen)
    for number in range(PROPAGATIONS):
        covariance = np.linalg.inv(_with_diagonal(information, site))
        spread, mean = covariance.diagonal(), covariance @ (pull + site_pull)
        precision = np.maximum(1 / spread - site, 1e-8)
        cavity_noise[chosen] = 1 / precision
        cavity_mean[chosen] = (mean / spread - site_pull) / precision
        before, found = found, slabs.posterior(cavity_mean, cavity_noise, odds)
        if (np.abs(found.mean - before.mean) < SETTLED * np.sqrt(found.variance)).all():
            break
        new_site, new_pull = _site(found, cavity_mean, cavity_noise, chosen)
        if number == 0:  # the first ones knew nothing of the other terms
            site, site_pull = new_site, new_pull
        else:
            site, site_pull = np.sqrt(site * new_site), (site_pull + new_pull) / 2
    return found, Joint(chosen, covariance)


def _with_diagonal(matrix: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """The matrix plus a diagonal one."""
    total = matrix.copy()
    total.flat[:: len(total) + 1] += diagonal
    return total


def _site(found: _Marginals, mean: np.ndarray, noise: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the prior adds to a cavity, as precision and precision times mean."""
    variance, nearby = found.variance[chosen], noise[chosen]
    precision = 1 / variance - 1 / nearby
    pull = found.mean[chosen] / variance - mean[chosen] / nearby
    return np.maximum(precision, 1e-9), np.where(precision > 1e-9, pull, 0.0)
