"""The second stage by moments: the effect alone, from where the first stage left it or from nothing."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from dpcate.errors import InputError
from dpcate.models.basis import Basis
from dpcate.models.moments import MomentsModel
from dpcate.privacy import Mechanisms
from dpcate.regress.moments import rules
from dpcate.regress.moments.belief import Belief, Evidence, Prior
from dpcate.regress.moments.rounds import UNIFORM, Block, Slope, State, deepened, focused, played
from dpcate.regress.moments.rows import MomentRows
from dpcate.regress.moments.together import EffectStart, first_basis
from dpcate.regress.offset import private_offset
from dpcate.regress.problem import Problem
from dpcate.regress.sizes import Sizes

CONSTANT_SHARE = 0.06  # of μ², for the constant before the rounds
ROUNDS_ON, ROUNDS_ANEW = 4, 7  # going on from a first stage, and starting anew
OFF_CENTRE = 0.01  # the part of the effect's unseen variance that is in its average, times the square of the overlap
# Intervals are the posterior's and, beyond it, hold effects that no term sees. Which part of what residuals hold may be
# such effects: where effects are open; where they are found, by how much arms differ, by how many columns matter (as a
# power of so many), and at most; that part is of no more than so many times the energy that is open, or was found.
OPEN, UNEVEN, MOST = 0.74, 1.15, 3.7
MANY, MANY_POWER = 3.6, 6.5
TIMES = 8.6
OTHER_REASONS = 0.14  # by how much the logarithms of the arms' residual variances may differ though effects do not vary
TYPICALLY_LEFT = 0.1  # of the outcome's variance, where it is not known


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Settings of M3; what is None follows from public numbers."""

    rounds: int | None = None

    name = "moments"

    def __post_init__(self) -> None:
        rounds = self.rounds
        if rounds is not None and (isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= 20):
            raise InputError("rounds must be a whole number from 1 to 20, or None for the default rule")

    def fit(
        self, problem: Problem, mechanisms: Mechanisms, mu: float, name: str, *, interval: bool = True
    ) -> MomentsModel:
        """The private function, spending μ in all."""
        rows = _effect_rows(problem, mechanisms)
        on = problem.start is not None
        state = self._on(problem, rows, mu, name) if on else self._anew(problem, rows, mechanisms, mu, name)
        return _model(state, _unresolved(state, problem) if on else 0.0, _residuals(state, problem))

    def _on(self, problem: Problem, rows: MomentRows, mu: float, name: str) -> State:
        state = _continued(problem, problem.start)
        rounds = 0 if problem.start.finished else self.rounds or ROUNDS_ON
        for number in range(rounds):
            spent, label, left = mu / math.sqrt(rounds), f"{name}: round {number + 1}", rounds - number
            if left > 1:  # what joins in the last round could not be set right
                state = deepened(state)
            rows.describe(state.basis)
            state = played(state, rows, spent, label, rules.LATE, two_valued=problem.two_valued, left=left)
        return state

    def _anew(self, problem: Problem, rows: MomentRows, mechanisms: Mechanisms, mu: float, name: str) -> State:
        signal = problem.signal(mu)
        gram = rules.gram_terms(signal)
        share = 1 - CONSTANT_SHARE - (rules.GRAM_SHARE if gram else 0.0)
        state = _from_offset(problem, mechanisms, mu * math.sqrt(CONSTANT_SHARE), signal, name)
        rows.describe(state.basis)
        rounds = self.rounds or ROUNDS_ANEW
        for number in range(rounds):
            if number == 1 and gram:
                state = focused(state, rows, gram, mu * math.sqrt(rules.GRAM_SHARE), name)
            clip = rules.EARLY if number < rounds / 2 else rules.LATE
            spent, label, left = mu * math.sqrt(share / rounds), f"{name}: round {number + 1}", rounds - number
            state = played(state, rows, spent, label, clip, two_valued=problem.two_valued, left=left)
        return state


def _effect_rows(problem: Problem, mechanisms: Mechanisms) -> MomentRows:
    """Scores ρφ − ρg as residuals: the pull is already in them."""
    present = problem.rho > 0
    arm = np.zeros(len(present)) if problem.treated is None else problem.treated
    return MomentRows(
        x=problem.x, target=problem.rho_phi, slopes=problem.rho[None], pulls=present.astype(float)[None],
        group=arm.astype(int), present=present, n=problem.n, limit=problem.score_limit,
        neighbours=problem.neighbours, rows_per_person=problem.rows_per_person, part=problem.part,
        mechanisms=mechanisms,
    )  # fmt: skip


def _continued(problem: Problem, start: EffectStart) -> State:
    """The effect's block of the first stage; its residuals, times what a unit of outcome does to a score."""
    factor = _score_units(problem, start.shares)
    sizes = dataclasses.replace(
        start.sizes, scale=start.sizes.scale * factor, doubt=np.full(2, 0.4), reach=start.sizes.reach * factor
    )
    block = dataclasses.replace(start.block, curvature=problem.curvature, pull=np.ones(2))
    return State(problem.n, start.basis, start.mean_error, (block,), sizes)


def _score_units(problem: Problem, share: np.ndarray) -> np.ndarray:
    """By arm, what a unit of outcome does to a score: λ/(1 − π) and λ/π; the arms' shares stand for 1 − π and π."""
    return problem.curvature / share


def _from_offset(problem: Problem, mechanisms: Mechanisms, mu: float, signal: float, name: str) -> State:
    """A private constant, and effects of the size of the outcome's residuals around it."""
    offset, columns = private_offset(problem, mechanisms, mu, name), problem.columns
    scale = min(offset.score_scale / problem.multiplier, problem.span)
    variance = offset.sd**2 + (offset.score_scale / offset.curvature) ** 2 / problem.n + (0.05 * scale) ** 2
    basis, error = first_basis(columns, signal), columns.mean_error
    prior = Prior(
        offset.value, variance, rules.trust(error) * scale * rules.EFFECT_SIZES, rules.EFFECT_COLUMNS, basis.width
    )
    block = Block(Evidence(prior), offset.curvature, np.ones(2), Slope.uncentred(error))
    return State(problem.n, basis, error, (block,), Sizes.prior(offset.score_scale, 0.4))


@dataclass(frozen=True)
class Residuals:
    """What they hold that may be an effect, and by how much the logarithms of the arms' variances differ."""

    hold: float
    apart: float


def _residuals(state: State, problem: Problem) -> Residuals:
    """As last counted, in units of the outcome; arms that are not told apart do not differ.

    An effect is a difference of two outcomes, hence twice their variance. But the less is left of the outcome's own
    variance, the more of that is noise: so it counts by the root of the part that is left.
    """
    start, whole = problem.start, problem.outcome_scale
    share = state.sizes.share if start is None else start.shares
    variances = (state.sizes.scale / _score_units(problem, share)) ** 2
    variance = float(share @ variances)
    apart = 0.0 if problem.treated is None else abs(math.log(variances[1] / variances[0]))
    left = TYPICALLY_LEFT if whole is None else min(variance / whole**2, 1.0)
    return Residuals(2 * variance * math.sqrt(left), apart)


def _unresolved(state: State, problem: Problem) -> float:
    """The variance of what is wrong with the average however often it is looked at: confounding that the first stage
    left, and effects that vary unseen, which weigh most where people are comparable."""
    unknown = float(state.beliefs[0].variance[1:].sum())
    overlap = float(problem.start.shares.prod())
    return problem.start.confounding + OFF_CENTRE * unknown / overlap**2


def _model(state: State, unresolved: float, residuals: Residuals) -> MomentsModel:
    (block,), basis = state.blocks, state.basis
    belief = state.belief(block, dataclasses.replace(block.evidence, unresolved=unresolved))
    used = [max(degree for term in basis.terms for j, degree in term if j == column) for column in range(basis.width)]
    polynomials = [matrix[: k + 1, : k + 1] for matrix, k in zip(basis.polynomials, used, strict=True)]
    variances = belief.likely * belief.variance
    variances[0] = state.beliefs[0].variance[0]  # as far as looks resolve it
    joint = belief.joint
    return MomentsModel(
        means=basis.means.tolist(),
        sds=basis.sds.tolist(),
        polynomials=[matrix.tolist() for matrix in polynomials],
        terms=[list(term) for term in basis.terms],
        coefficients=belief.mean.tolist(),
        variances=variances.tolist(),
        correlated=[] if joint is None else joint.terms.tolist(),
        correlation=[] if joint is None else joint.correlation.tolist(),
        truncation_variance=belief.beyond(_filled(basis)) + _unseen(belief, residuals),
    )


def _unseen(belief: Belief, residuals: Residuals) -> float:
    """The variance of effects where no term sees them, as a part of what residuals hold.

    Of the energy that is open, a fixed part may be there. Where effects were found, more of them may be elsewhere: the
    more so the more columns matter, since products of many are in no basis, and the more the arms' residuals differ,
    since a varying effect is in those of one arm. Where little was found and little is open, little is unseen, however
    large residuals are.
    """
    known, unknown = float((belief.mean[1:] ** 2).sum()), float(belief.variance[1:].sum())
    many = (max(belief.columns - 1, 0.0) / MANY) ** MANY_POWER
    uneven = UNEVEN * max(residuals.apart - OTHER_REASONS, 0.0)
    still_open = OPEN * unknown * min(residuals.hold, TIMES * unknown)
    elsewhere = min(many + uneven, MOST) * known * min(residuals.hold, TIMES * known)
    return (still_open + elsewhere) / (known + unknown)


def _filled(basis: Basis) -> np.ndarray:
    """By column, how much degrees beyond matter: a jump within the bounds seldom lies where a narrow column does."""
    return np.minimum(1.0, basis.sds / UNIFORM) ** 2
