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
from dpcate.regress.moments.belief import FEW, Belief, Evidence, Prior
from dpcate.regress.moments.rounds import UNIFORM, Block, Slope, State, deepened, focused, played
from dpcate.regress.moments.rows import MomentRows
from dpcate.regress.moments.together import EffectStart, first_basis
from dpcate.regress.offset import private_offset
from dpcate.regress.problem import Problem
from dpcate.regress.sizes import Sizes

CONSTANT_SHARE = 0.06  # of μ², for the constant before the rounds
ROUNDS_ON, ROUNDS_ANEW = 4, 7  # going on from a first stage, and starting anew
CONFOUNDING = 2.0  # how much more confounding is left than if columns mattered to treatment and outcome independently
OFF_CENTRE = 0.01  # the part of the effect's unseen variance that is in its average, times the square of the overlap
# What intervals take: by what variances are multiplied, of the constant (where it is sampling noise, and how much more
# where it is privacy noise) and of terms (and how much more where columns are half chosen); and which parts of other
# variances join them. Of SELECTION and PRODUCTS, for each column beyond a few that seems to matter.
CONSTANT, NOISY_CONSTANT, UNRESOLVED = 3.0, 15.0, 0.03
TERMS, SELECTION = 0.32, 26.0
BEYOND, PRODUCTS, UNEVEN = 1.15, 0.19, 2.5
OTHER_REASONS = 0.2  # by how much residuals of the treated may vary more than those of controls, though effects do not


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
        return _model(state, _unseen(state, problem) if on else Unseen())

    def _on(self, problem: Problem, rows: MomentRows, mu: float, name: str) -> State:
        state = _continued(problem, problem.start)
        rounds = self.rounds or ROUNDS_ON
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
        x=problem.x, target=problem.rho_phi, slopes=problem.rho[:, None], pulls=present.astype(float)[:, None],
        group=arm.astype(int), present=present, n=problem.n, limit=problem.score_limit,
        neighbours=problem.neighbours, rows_per_person=problem.rows_per_person, part=problem.part,
        mechanisms=mechanisms,
    )  # fmt: skip


def _continued(problem: Problem, start: EffectStart) -> State:
    """The effect's block of the first stage; its residuals, times what a unit of outcome does to a score."""
    factor = _score_units(problem, start)
    sizes = Sizes(start.sizes.scale * factor, np.full(2, 0.4), start.sizes.reach * factor, start.sizes.share)
    block = dataclasses.replace(start.block, curvature=problem.curvature, pull=np.ones(2))
    return State(problem.n, start.basis, start.mean_error, (block,), sizes)


def _score_units(problem: Problem, start: EffectStart) -> np.ndarray:
    """By arm, what a unit of outcome does to a score: λ/(1 − π) and λ/π."""
    return problem.curvature / np.array([1 - start.treated, start.treated])


def _from_offset(problem: Problem, mechanisms: Mechanisms, mu: float, signal: float, name: str) -> State:
    """A private constant, and effects of the size of the outcome's residuals around it."""
    offset, columns = private_offset(problem, mechanisms, mu, name), problem.columns
    scale = min(offset.score_scale / problem.multiplier, problem.span)
    variance = offset.sd**2 + (offset.score_scale / offset.curvature) ** 2 / problem.n + (0.05 * scale) ** 2
    basis, error = first_basis(columns, signal), columns.mean_error
    prior = Prior(
        offset.value, variance, rules.trust(error) * scale * rules.EFFECT_SIZES, rules.EFFECT_COLUMNS, basis.width
    )
    block = Block(Evidence(prior), offset.curvature, np.ones(2), 1.0, Slope.uncentred(error))
    return State(problem.n, basis, error, (block,), Sizes.prior(offset.score_scale, 0.4))


@dataclass(frozen=True)
class Unseen:
    """Variances of what no look at the effect resolves: of what is wrong with its average, and of effects that vary
    where the basis does not; and the most that the effect's error can be, apart from its average."""

    average: float = 0.0
    elsewhere: float = 0.0
    most: float = math.inf


def _unseen(state: State, problem: Problem) -> Unseen:
    """In the average: confounding that the first stage left, and effects that vary unseen, which weigh most where
    people are comparable. Where effects vary unseen, residuals of the treated vary more than those of controls; and an
    effect's error is the difference of the arms' errors, which residuals hold."""
    unknown = float(state.beliefs[0].variance[1:].sum())
    overlap = problem.start.treated * (1 - problem.start.treated)
    control, treated = (state.sizes.scale / _score_units(problem, problem.start)) ** 2
    return Unseen(
        average=CONFOUNDING * problem.start.confounding + OFF_CENTRE * unknown / overlap**2,
        elsewhere=float(max(treated - (1 + OTHER_REASONS) * control, 0.0)),
        most=float(treated + control),
    )


def _model(state: State, unseen: Unseen) -> MomentsModel:
    (block,), basis = state.blocks, state.basis
    belief = state.belief(block, dataclasses.replace(block.evidence, unresolved=unseen.average))
    used = [max(degree for term in basis.terms for j, degree in term if j == column) for column in range(basis.width)]
    polynomials = [matrix[: k + 1, : k + 1] for matrix, k in zip(basis.polynomials, used, strict=True)]
    further = max(belief.columns - FEW, 0.0)
    variances = belief.variance * (TERMS + SELECTION * further * _half_chosen(belief))
    truncation = (
        BEYOND * belief.beyond(_filled(basis))
        + PRODUCTS * further * _missing_products(basis, belief.mean)
        + UNEVEN * unseen.elsewhere
    )
    believable = min(1.0, unseen.most / (float(variances[1:].sum()) + truncation))
    variances *= believable
    variances[0] = _constant(state) + UNRESOLVED * unseen.average
    gram = block.evidence.gram
    return MomentsModel(
        means=basis.means.tolist(),
        sds=basis.sds.tolist(),
        polynomials=[matrix.tolist() for matrix in polynomials],
        terms=[list(term) for term in basis.terms],
        coefficients=belief.mean.tolist(),
        variances=variances.tolist(),
        correlated=[] if gram is None else gram.chosen.tolist(),
        correlation=[] if belief.correlation is None else belief.correlation.tolist(),
        truncation_variance=believable * truncation,
    )


def _constant(state: State) -> float:
    """The constant's variance, as far as looks resolve it; what rows alone would not leave counts for more."""
    variance = float(state.beliefs[0].variance[0])
    noisy = max(1 - state.sampling(state.blocks[0]) / variance, 0.0)
    return (CONSTANT + NOISY_CONSTANT * noisy) * variance


def _half_chosen(belief: Belief) -> float:
    """Nothing where all of the energy is known or none, ¼ where half of it is, so that columns are half chosen."""
    known, unknown = float((belief.mean[1:] ** 2).sum()), float(belief.variance[1:].sum())
    found = known / (known + unknown)
    return found * (1 - found)


def _filled(basis: Basis) -> np.ndarray:
    """By column, how much degrees beyond matter: a jump within the bounds seldom lies where a narrow column does."""
    return np.minimum(1.0, basis.sds / UNIFORM) ** 2


def _missing_products(basis: Basis, mean: np.ndarray) -> float:
    """Σ EᵢEⱼ / ΣE over pairs of columns whose products the basis lacks, E being the energy found along a column.

    Nothing if one column matters; the more, the more evenly effects are spread over columns.
    """
    energy = np.zeros(basis.width)
    for term, value in zip(basis.terms, mean, strict=True):
        if len(term) == 1:
            energy[term[0][0]] += value**2
    known = {tuple(column for column, _ in term) for term in basis.terms if len(term) > 1}
    missing = (energy.sum() ** 2 - (energy**2).sum()) / 2 - sum(energy[i] * energy[j] for i, j in known)
    return float(max(missing, 0.0) / max(energy.sum(), 1e-300))
