"""Rounds of clipped scores, each followed by a Bayesian update: how the functions of all blocks are fitted together.

A round counts residual sizes, chooses clips and where to look, and releases a score. Where to look is water-filling:
the weights d² that leave the least total variance in what matters. Counts also show when a step went too far, as it can
where columns go together: then it is taken back. All else is a function of released numbers.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpcate.bins import size_edges
from dpcate.models.basis import Basis
from dpcate.regress.moments import rules
from dpcate.regress.moments.belief import Belief, Evidence, Gram, Observation
from dpcate.regress.moments.rows import MomentRows
from dpcate.regress.sizes import Sizes, counted, worth_counting

LEAST_WEIGHT = 1e-12  # below, a coefficient is not looked at
UNCENTRED = 0.06  # typical correlation between two basis functions that should have none
SLOPE, SLOPE_VARIANCE, SLOPE_DRIFT = 0.85, 0.04, 0.005
LEAST_SLOPE, LARGEST_SLOPE = 0.3, 8.0
LEAST_EIGENVALUE = 0.3  # of a second moment: columns that hardly differ must not be told apart by their noise
CORRELATED, CORRELATION = 0.15, 0.4  # how many pairs of terms are correlated, and how strongly
SCALE_SPREAD = 0.3  # prior variance of a term's second moment around 1
WORTH_DEEPENING, SURE = 0.3, 0.9  # the probability from which a column may grow, and from which it does
LARGER, SURELY_LARGER = 0.1, 2.0  # residuals have grown if their log-scale did by this and so many sds of its noise
SHORTER = 2.0  # how much shorter steps become once one went too far
TOO_FAR = 5.0  # a round finds no more energy than residuals hold: a step that claims so many times as much went too far
MOST_SHORTENED = 4  # how often the same step is made shorter
EVEN = 0.2  # the least sd, and the largest distance of the mean from the middle, of a column that fills its range
UNIFORM = 0.26  # the least sd of one that does so evenly (0.29 if it is uniform)


@dataclass(frozen=True)
class Slope:
    """How strongly scores respond to a move, over what the second moment says: clipping flattens them, and columns that
    go together steepen them where their second moment is not known."""

    value: float = SLOPE
    variance: float = SLOPE_VARIANCE

    @classmethod
    def uncentred(cls, mean_error: float) -> "Slope":
        """Before any move, of columns whose means are off by a normal error: its square adds to their second moment."""
        return cls(SLOPE * (1 + mean_error**2), SLOPE_VARIANCE + 2 * mean_error**4)

    def seen(self, value: float, noise: float) -> "Slope":
        prior = self.variance + SLOPE_DRIFT
        posterior = self.value + (value - self.value) * prior / (prior + noise)
        return Slope(min(max(posterior, LEAST_SLOPE), LARGEST_SLOPE), prior * noise / (prior + noise))

    def steeper(self) -> "Slope":
        return dataclasses.replace(self, value=min(SHORTER * self.value, LARGEST_SLOPE))


@dataclass(frozen=True)
class Block:
    """One of the functions that are fitted together: columns that matter to the first are favoured in the others.

    `curvature` is E[u·s], `pull` E[u²] by group; `known_slope` is that of the constant and of terms in the released
    second moment, `slope` that of all others.
    """

    evidence: Evidence
    curvature: float
    pull: np.ndarray
    slope: Slope = Slope()
    known_slope: Slope = Slope()

    def steeper(self) -> "Block":
        return dataclasses.replace(self, slope=self.slope.steeper(), known_slope=self.known_slope.steeper())

    def known(self, terms: int) -> np.ndarray:
        """Which terms are the constant or in the released second moment."""
        known = np.arange(terms) == 0
        if self.evidence.gram is not None:
            known[self.evidence.gram.chosen] = True
        return known


@dataclass(frozen=True)
class Step:
    """A round's score, the coefficients that it was taken at, where it looked, and its noise."""

    score: np.ndarray
    start: np.ndarray
    direction: np.ndarray
    sd: float


@dataclass(frozen=True)
class Anchor:
    """Where residuals were smallest so far: their sizes, and the evidence that led there."""

    sizes: Sizes
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class State:
    """What is known between rounds."""

    n: float
    basis: Basis
    mean_error: float
    blocks: tuple[Block, ...]
    sizes: Sizes
    last: Step | None = None
    anchor: Anchor | None = None

    @functools.cached_property
    def beliefs(self) -> list[Belief]:
        first, *others = self.blocks
        outcome = self.belief(first, first.evidence)
        return [outcome] + [self.belief(block, block.evidence.favouring(outcome)) for block in others]

    def belief(self, block: Block, evidence: Evidence) -> Belief:
        """What evidence says of a block's function."""
        return evidence.belief(self.basis.terms, self.sampling(block), self.mean_error)

    @property
    def mean(self) -> np.ndarray:
        return np.array([belief.mean for belief in self.beliefs])

    @property
    def variance(self) -> np.ndarray:
        return np.array([belief.variance for belief in self.beliefs])

    def sampling(self, block: Block) -> float:
        """The variance that rows leave in a coefficient of a unit feature."""
        residual = float((self.sizes.share * block.pull) @ self.sizes.variance)
        return residual / (self.n * block.curvature**2)

    def with_evidence(self, evidence: list[Evidence]) -> "State":
        blocks = tuple(
            dataclasses.replace(block, evidence=new) for block, new in zip(self.blocks, evidence, strict=True)
        )
        return dataclasses.replace(self, blocks=blocks)


@dataclass(frozen=True)
class _Clips:
    """Where residuals are clipped, by group, and the norm of a score in units of what is typical of it."""

    residual: np.ndarray
    norm: float

    def norm_bound(self, state: State, weight: np.ndarray) -> float:
        """The typical norm of a clipped score along these weights, large ones counting more."""
        pulls = sum(w * block.pull for w, block in zip(weight.sum(axis=1), state.blocks, strict=True))
        norms, share = self.residual**2 * pulls, state.sizes.share
        return self.norm * math.sqrt(float(share @ norms**2 / (share @ norms)))


def played(
    state: State,
    rows: MomentRows,
    mu: float,
    name: str,
    clip: rules.Clip,
    *,
    constants_only: bool = False,
    two_valued: bool = False,
    importance: float = 1.0,
    left: int = 1,
) -> State:
    """One round, spending μ; where to look is chosen as if all rounds `left`, this one among them, looked there.

    `importance` is what a unit of the first block's variance costs the user, next to 1 for the last one's; a constant's
    costs as much as any.
    """
    before = state
    if two_valued:
        state = dataclasses.replace(state, sizes=dataclasses.replace(state.sizes, reach=np.full(2, rows.limit / 2)))
    else:
        state = sized(state, rows, mu * math.sqrt(rules.SIZE_SHARE), f"{name}, residual sizes")
        mu *= math.sqrt(1 - rules.SIZE_SHARE)
    believed = before if state.blocks is before.blocks else state  # scores are taken where residuals were counted
    mean, variance, sizes, count = believed.mean, believed.variance, state.sizes, len(state.blocks)
    effective = count if constants_only else variance.sum() ** 2 / (variance**2).sum()
    gentle = rules.gentleness(rows.n, mu, effective)
    if two_valued or constants_only:  # clipping favours the more common value, or keeps a far constant from being seen
        gentle = max(gentle, 1.0)
    residual = np.minimum(np.maximum(clip.residual * gentle * sizes.scale, sizes.reach), rows.limit / 2)
    clips = _Clips(residual, clip.norm * (1.0 if constants_only else gentle))
    if constants_only:
        weight = np.zeros_like(mean)
        weight[:, 0] = 1 / count
    else:
        weight = _dealt_out(state, rows, variance, clips, mu, importance, left)
    weight[weight < LEAST_WEIGHT] = 0.0
    bound, direction = clips.norm_bound(state, weight), np.sqrt(weight)
    noisy = rows.scores(mean, clips.residual, direction, bound, mu, f"{name}, scores")
    return _within_reach(state, Step(noisy.value, mean, direction, noisy.sd), variance)


def _dealt_out(
    state: State, rows: MomentRows, variance: np.ndarray, clips: _Clips, mu: float, importance: float, left: int
) -> np.ndarray:
    """Weights of all coefficients: where looks lower what errors cost most."""
    costs = np.ones_like(variance)
    costs[:-1] = importance
    capacity = np.repeat([[block.curvature**2] for block in state.blocks], variance.shape[1], axis=1)
    sd = rows.score_bound(clips.norm_bound(state, costs / costs.sum())).value / (rows.n * mu)
    costs[:, 0] = costs.max()
    weight = water_filled(variance.ravel(), costs.ravel(), left * capacity.ravel() / sd**2)
    return weight.reshape(variance.shape)


def sized(state: State, rows: MomentRows, mu: float, name: str) -> State:
    """Count residual sizes; where they have grown, go back to where they were smallest, to go on in shorter steps."""
    edges = worth_counting(size_edges(rows.limit), state.sizes)
    sizes = counted(rows.sizes(state.mean, edges, mu, name), edges, state.sizes)
    evidence = tuple(block.evidence for block in state.blocks)
    here = dataclasses.replace(state, sizes=sizes, anchor=Anchor(sizes, evidence))
    if state.anchor is None:
        return here
    (now, doubt), (before, earlier) = sizes.log_spread, state.anchor.sizes.log_spread
    if now < before:
        return here
    if now < before + LARGER + SURELY_LARGER * math.hypot(doubt, earlier):
        return dataclasses.replace(here, anchor=state.anchor)
    blocks = tuple(
        dataclasses.replace(block, evidence=old, slope=block.slope.steeper())
        for block, old in zip(state.blocks, state.anchor.evidence, strict=True)
    )
    return dataclasses.replace(state, blocks=blocks, sizes=state.anchor.sizes, last=None)


def _within_reach(state: State, step: Step, variance: np.ndarray) -> State:
    """The score as an observation; by a shorter step if it moves a function by more than residuals can hold, as where
    degrees of a column go closely together: then scores respond more strongly than was believed."""
    updated = _updated(state, step, variance)
    reach = TOO_FAR * state.n * np.array([state.sampling(block) for block in state.blocks])
    for _ in range(MOST_SHORTENED):
        far = ((updated.mean - step.start)[:, 1:] ** 2).sum(axis=1) > reach
        if not far.any():
            break
        blocks = tuple(
            dataclasses.replace(new.steeper() if too_far else new, evidence=old.evidence)
            for new, old, too_far in zip(updated.blocks, state.blocks, far, strict=True)
        )
        updated = _updated(dataclasses.replace(state, blocks=blocks, last=None), step, variance)
    return updated


def _updated(state: State, step: Step, variance: np.ndarray) -> State:
    """The score as an observation of every coefficient that it looked at."""
    seen = step.direction > 0
    scale = np.where(seen, step.direction, 1e-100)
    blocks = [_with_slopes(block, state.last, step, row) for row, block in enumerate(state.blocks)]
    evidence, apart = [], np.arange(variance.shape[1]) > 0  # from the constant
    for row, block in enumerate(blocks):
        known = block.known(len(variance[row]))
        response = block.curvature * np.where(known, block.known_slope.value, block.slope.value)
        slope_variance = np.where(known, block.known_slope.variance, block.slope.variance)
        others = variance[row].sum() - variance[row]
        centring = apart * variance[row, 0]
        model = UNCENTRED**2 * others + state.mean_error**2 * centring + slope_variance * variance[row]
        noise = (step.sd / scale[row] / response) ** 2 + model
        evidence.append(
            block.evidence.and_also(
                Observation(
                    step=np.where(seen[row], step.score[row] / scale[row] / response, 0.0),
                    start=step.start[row],
                    precision=np.where(seen[row], 1 / noise, 0.0),
                )
            )
        )
    return dataclasses.replace(state, blocks=tuple(blocks), last=step).with_evidence(evidence)


def _with_slopes(block: Block, last: Step | None, step: Step, row: int) -> Block:
    """How much the score fell along the last move, over how much it should have, shrunk to what was believed."""
    if last is None:
        return block
    both = (step.direction[row] > 0) & (last.direction[row] > 0)
    gram, move = block.evidence.gram, step.start[row] - last.start[row]
    fall = block.curvature * (gram.times(move) if gram else move)

    def secant(slope: Slope, part: np.ndarray) -> Slope:
        expected = float(fall[part] @ move[part])
        if expected < 1e-12:
            return slope
        before, now = (one.score[row, part] / one.direction[row, part] for one in (last, step))
        noise = (step.sd / step.direction[row, part]) ** 2 + (last.sd / last.direction[row, part]) ** 2
        return slope.seen(float((before - now) @ move[part]) / expected, float(noise @ move[part] ** 2) / expected**2)

    known = block.known(len(move))
    return dataclasses.replace(
        block, slope=secant(block.slope, both & ~known), known_slope=secant(block.known_slope, both & known)
    )


def deepened(state: State, least_sd: float = UNIFORM) -> State:
    """With all degrees of the columns that very likely matter to the effect and fill their ranges evenly, and with
    products of the largest of these.

    Of such columns the basis is nearly orthonormal, so that no second moment is needed; which degrees count their law
    will tell, and whether products do need not be guessed. Elsewhere high degrees may go together so closely that steps
    overshoot, as they may if a column has few values at uneven distances; so a column must be nearly uniform, unless
    second moments are about to be released.
    """
    basis, matters = state.basis, state.beliefs[-1].matters
    even = (basis.sds > least_sd) & (np.abs(basis.means - 0.5) < EVEN)
    deep = [j for j in range(basis.width) if even[j] and matters[(j,)] > SURE]
    if not deep:
        return state
    grown = basis.grown(_largest(state, deep), deep)
    return state if grown.terms == basis.terms else dataclasses.replace(state, basis=grown, last=None)


def focused(state: State, rows: MomentRows, count: int, mu: float, name: str) -> State:
    """Release the second moment of the terms that matter most, so that columns which go together cease to mislead.

    Products between such columns, and higher degrees of columns that may matter, join the basis if they are among those
    terms: outside, where nothing is known of how they go together with the rest, they would do more harm than good.
    """
    state = deepened(state, EVEN)
    candidate = dataclasses.replace(state, basis=_grown(state), last=None, anchor=None)
    size = (candidate.mean**2 + candidate.variance).sum(axis=0)
    best = set((1 + np.argsort(-size[1:], kind="stable")[:count]).tolist())
    known = len(state.basis.terms)
    kept = [place for place in range(len(candidate.basis.terms)) if place < known or place in best]
    basis = dataclasses.replace(candidate.basis, terms=tuple(candidate.basis.terms[place] for place in kept))
    chosen = np.array([row for row, place in enumerate(kept) if place in best])
    rows.describe(basis)
    noisy = rows.second_moment(chosen, 1.2 * math.sqrt(len(chosen)), mu, f"{name}: second moments")
    gram = Gram(chosen, _shrunk_gram(noisy.value, noisy.sd, rows.n))
    evidence = [dataclasses.replace(block.evidence, gram=gram) for block in state.blocks]
    return dataclasses.replace(candidate, basis=basis).with_evidence(evidence)


def _grown(state: State) -> Basis:
    """With products between the columns that matter most, and all degrees of those that may matter."""
    paired = _largest(state, range(state.basis.width))
    deep = [j for j in paired if state.beliefs[-1].matters[(j,)] > WORTH_DEEPENING]
    return state.basis.grown(paired, deep)


def _largest(state: State, columns: Iterable[int]) -> list[int]:
    """Those of the columns whose own terms add most to the variance of all blocks, as far as it is known, in order."""
    energy = np.zeros(state.basis.width)
    for term, size in zip(state.basis.terms, (state.mean**2 + state.variance).sum(axis=0), strict=True):
        if len(term) == 1:
            energy[term[0][0]] += size
    return sorted(sorted(columns, key=lambda column: -energy[column])[: rules.PAIRED_COLUMNS])


def _shrunk_gram(matrix: np.ndarray, sd: float, n: float) -> np.ndarray:
    """Most pairs of terms are uncorrelated: shrink entry by entry, and keep the matrix well conditioned."""
    noise = sd**2 / 2 + 1 / n
    ratio = CORRELATION**2 / noise
    log_odds = math.log(CORRELATED / (1 - CORRELATED)) + 0.5 * (
        matrix**2 / noise * ratio / (1 + ratio) - math.log1p(ratio)
    )
    shrunk = matrix * ratio / (1 + ratio) / (1 + np.exp(-np.clip(log_odds, -30, 30)))
    own = 1 + (np.diag(matrix) - 1) * SCALE_SPREAD / (SCALE_SPREAD + 2 * noise)
    np.fill_diagonal(shrunk, np.clip(own, 0.3, 8.0))
    values, vectors = np.linalg.eigh(shrunk)
    return (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T


def water_filled(variance: np.ndarray, importance: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """argmin over w ≥ 0, Σw = 1, of Σ importanceⱼ / (1/varianceⱼ + capacityⱼ·wⱼ).

    The solution is  wⱼ = riseⱼ·max(level − gapⱼ, 0),  gapⱼ being how far startⱼ/riseⱼ lies above the least of them:
    entries become positive in the order of their gaps.
    """
    start, rise = 1 / np.maximum(variance, 1e-12) / capacity, np.sqrt(importance / capacity)
    gap = start / rise - (start / rise).min()
    order = np.argsort(gap, kind="stable")
    levels = (1 + np.cumsum((rise * gap)[order])) / np.cumsum(rise[order])
    filled = np.count_nonzero(levels > gap[order]) - 1
    weight = rise * np.maximum(levels[filled] - gap, 0.0)
    return weight / weight.sum()
