"""Propensity, outcome and effect fitted together: the first stage of moments.

With  w = a − π(x),  the outcome is  y = m(x) + w·τ(x) + e,  and functions of x are uncorrelated with w times functions
of x. So m and τ are two blocks of one regression: no residual is left with a treated and a control half, which clipping
would bias, and what is learned of τ on the way is not lost: the second stage starts from it.

Its equations for τ are the R-learner's. Where that is the second stage, on the same rows, m is fitted on with τ to the
end, and nothing is left to a second stage: a curve that both m and π lack would be taken for one of the effect there.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcate.models.basis import Basis
from dpcate.privacy import Mechanisms, Neighbours
from dpcate.regress.columns import ColumnMoments
from dpcate.regress.moments import rules
from dpcate.regress.moments.belief import Evidence, Prior
from dpcate.regress.moments.rounds import Block, Slope, State, deepened, focused, played, sized
from dpcate.regress.moments.rows import MomentRows
from dpcate.regress.problem import signal
from dpcate.regress.sizes import Place, Sizes, located, worth_locating

LOCATION_SHARE = 0.09  # of the stage, for where outcomes lie
LOCATION_LOOKS = 2  # each around what the last one found
PROPENSITY_SHARE = 0.12
CONSTANTS_SHARE = 0.1  # of the rounds
CHECK_SHARE = 0.015  # of the rounds, for a last look at residuals where second moments made steps long and none follows
GRAM_SHARE = 2 * rules.GRAM_SHARE  # the second stage needs no other
PROPENSITY_ROUNDS, ROUNDS = 2, 4
EARLY_ROUNDS, LATE_SHARE = 3, 0.6  # where the effect is fitted to the end: the first rounds, and late ones' share
OUTCOME_IMPORTANCE = 6.0  # next to the effect's 1: an error in m adds to all residuals, and hides which columns matter
LATE_IMPORTANCE = 0.05  # the same in late rounds, where columns are known
CONFOUNDING = 2.0  # how much more confounding is left than if columns mattered to treatment and outcome independently

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class TrialRows:
    """What the fit needs of rows, and the public facts around them; `propensity` where it is known; in how many late
    rounds the effect is fitted to the end (None: by rule; 0: a second stage does that)."""

    x: np.ndarray
    treated: np.ndarray
    outcome: np.ndarray
    present: np.ndarray
    low: float
    high: float
    two_valued: bool
    n: float
    neighbours: Neighbours
    rows_per_person: int
    part: int | None
    columns: ColumnMoments
    propensity_floor: float
    propensity: Function | None
    late_rounds: int | None

    def __repr__(self) -> str:
        return "<TrialRows: sealed>"


@dataclass(frozen=True)
class EffectStart:
    """What the first stage learned of the effect, residual sizes by arm, the outcome's own scale, how many are treated,
    the variance of the confounding that is left, and whether a second stage is to go on."""

    basis: Basis
    mean_error: float
    block: Block
    sizes: Sizes
    outcome_scale: float
    treated: float
    confounding: float
    finished: bool

    @property
    def shares(self) -> np.ndarray:
        """Of both arms, the treated second."""
        return np.array([1 - self.treated, self.treated])


@dataclass(frozen=True)
class Together:
    """Three released functions, and the start of a second stage."""

    propensity: Function
    outcome: Function
    effect: Function
    start: EffectStart


def fit_together(trial: TrialRows, mechanisms: Mechanisms, mu: float, name: str) -> Together:
    """π, then m and τ, spending μ in all."""
    late_rounds = rules.late_rounds(trial.n, mu) if trial.late_rounds is None else trial.late_rounds
    late = mu * math.sqrt(LATE_SHARE) if late_rounds else 0.0
    early = math.sqrt(mu**2 - late**2)
    worth = signal(trial.n, early, trial.neighbours, trial.rows_per_person)
    basis, error, gram = first_basis(trial.columns, worth), trial.columns.mean_error, rules.gram_terms(worth)
    spend = _early_spending(early, known=trial.propensity is not None, gram=gram > 0)

    propensity, doubt, treated = _propensity(trial, basis, error, mechanisms, spend["propensity"], name)
    rows = _outcome_rows(trial, propensity(trial.x), mechanisms)
    before = Place.prior(trial.low, trial.high)
    place = _located(trial, rows, before, spend["location"], name)
    rows = dataclasses.replace(rows, target=np.where(trial.present, rows.target - place.centre, 0.0))
    rows.describe(basis)
    state = _start(trial.n, basis, error, before, place, treated)
    state = _played_early(state, rows, spend, name, gram, two_valued=trial.two_valued, late=late_rounds > 0)
    doubt = CONFOUNDING * doubt / (treated * (1 - treated)) ** 2
    for left in range(late_rounds, 0, -1):
        label = f"effect and outcome: round {late_rounds - left + 1}"
        state = _played_late(state, rows, late / math.sqrt(late_rounds), label, doubt, trial.two_valued, left)
    return _together(state, propensity, place, doubt, treated, finished=late_rounds > 0)


def _early_spending(mu: float, *, known: bool, gram: bool) -> dict[str, float]:
    """What of μ goes to where outcomes lie, to the propensity unless it is known, to second moments, to rounds."""
    shares = {
        "location": LOCATION_SHARE,
        "propensity": 0.0 if known else PROPENSITY_SHARE,
        "gram": GRAM_SHARE if gram else 0.0,
    }
    shares["rounds"] = 1 - sum(shares.values())
    return {part: mu * math.sqrt(share) for part, share in shares.items()}


def first_basis(columns: ColumnMoments, signal: float) -> Basis:
    """Every column standardised by its released moments."""
    degree = rules.first_degree(signal, len(columns.means))
    return Basis.additive(columns.means, columns.sds, degree, rules.HIGHEST_DEGREE)


def _propensity(
    trial: TrialRows, basis: Basis, error: float, mechanisms: Mechanisms, mu: float, name: str
) -> tuple[Function, np.ndarray, float]:
    """π by rounds of its own (or as known), the variance of its terms, and the share of treated."""
    floor = trial.propensity_floor
    if trial.propensity is not None:
        known = trial.propensity
        middle = float(np.clip(known(np.full((1, basis.width), 0.5))[0], floor, 1 - floor))
        return (lambda x: np.clip(known(x), floor, 1 - floor)), np.zeros(len(basis.terms)), middle
    ones = trial.present.astype(float)[None]
    rows = MomentRows(
        target=(trial.treated - 0.5) * trial.present, slopes=ones, pulls=ones, group=trial.treated.astype(int),
        limit=2.0, mechanisms=mechanisms, **_shared(trial),
    )  # fmt: skip
    rows.describe(basis)
    prior = Prior(0.0, 0.25**2, rules.PROPENSITY_SIZES, rules.EFFECT_COLUMNS, basis.width)
    block = Block(Evidence(prior), 1.0, np.ones(2), Slope.uncentred(error))
    state = State(trial.n, basis, error, (block,), Sizes.prior(0.5, 0.1))
    each = mu * math.sqrt((1 - CONSTANTS_SHARE) / PROPENSITY_ROUNDS)
    for number in range(PROPENSITY_ROUNDS + 1):
        first = number == 0
        spent = mu * math.sqrt(CONSTANTS_SHARE) if first else each
        label = f"{name}: propensity, round {number + 1}"
        clip = rules.FIRST if first else rules.EARLY
        state = played(state, rows, spent, label, clip, constants_only=first, two_valued=True)
    belief = state.beliefs[0]
    mean = belief.mean

    def propensity(x: np.ndarray) -> np.ndarray:
        return np.clip(0.5 + basis.at(x) @ mean, floor, 1 - floor)

    return propensity, belief.variance, float(np.clip(0.5 + mean[0], floor, 1 - floor))


def _located(trial: TrialRows, rows: MomentRows, place: Place, mu: float, name: str) -> Place:
    """Where outcomes lie, by looks that are each around what the last one found."""
    for number in range(LOCATION_LOOKS):
        edges = worth_locating(place, trial.low, trial.high)
        label = f"{name}: where outcomes lie, look {number + 1}"
        place = located(rows.values(edges, mu / math.sqrt(LOCATION_LOOKS), label), edges, place)
    return place


def _outcome_rows(trial: TrialRows, propensity: np.ndarray, mechanisms: Mechanisms) -> MomentRows:
    present = trial.present.astype(float)
    w = (trial.treated - propensity) * present
    return MomentRows(
        target=trial.outcome * present, slopes=np.stack([present, w]), pulls=np.stack([present, 2 * w]),
        group=trial.treated.astype(int), limit=2 * (trial.high - trial.low), mechanisms=mechanisms,
        **_shared(trial),
    )  # fmt: skip


def _shared(trial: TrialRows) -> dict[str, object]:
    names = ("x", "present", "n", "neighbours", "rows_per_person", "part")
    return {name: getattr(trial, name) for name in names}


def _start(n: float, basis: Basis, error: float, before: Place, place: Place, treated: float) -> State:
    """Blocks for m and τ; effects, outcomes' curves and residuals are all of the outcome's scale, a priori.

    An average effect is shrunk by what the scale may be, not by what it seems: a spike of noise can look like a small
    scale. Beyond what was believed before any look, a doubtful scale is no reason to trust a noisy average.
    """
    scale = place.scale
    largest = max(scale, min(scale * math.exp(place.scale_doubt), before.scale))
    by_arm = np.array([treated, 1 - treated]) ** 2  # w² among controls and among treated
    size = rules.trust(error) * scale
    outcome = Prior(
        0.0, (place.doubt + 0.1 * scale) ** 2, size * rules.OUTCOME_SIZES, rules.OUTCOME_COLUMNS, basis.width
    )
    effect = Prior(
        0.0, (largest * rules.AVERAGE_SIZES) ** 2, size * rules.EFFECT_SIZES, rules.EFFECT_COLUMNS, basis.width
    )
    blocks = (
        Block(Evidence(outcome), 1.0, np.ones(2), Slope.uncentred(error)),
        Block(Evidence(effect), 2 * treated * (1 - treated), 4 * by_arm, Slope.uncentred(error)),
    )
    return State(n, basis, error, blocks, Sizes.prior(scale, place.scale_doubt, treated))


def _played_early(
    state: State, rows: MomentRows, spend: dict[str, float], name: str, gram: int, *, two_valued: bool, late: bool
) -> State:
    """Both constants, then rounds in which m matters most; after the first, second moments if they can be afforded. In
    the end residuals are looked at once more, unless late rounds do that anyway."""
    rounds, count = spend["rounds"], EARLY_ROUNDS if late else ROUNDS
    state = played(
        state, rows, rounds * math.sqrt(CONSTANTS_SHARE), f"{name}: constants", rules.FIRST,
        constants_only=True, two_valued=two_valued,
    )  # fmt: skip
    check = CHECK_SHARE if gram and not late and not two_valued else 0.0
    each = rounds * math.sqrt((1 - CONSTANTS_SHARE - check) / count)
    for number in range(count):
        if number == 1 and gram:
            state = focused(state, rows, gram, spend["gram"], name)
        label = f"{name}: round {number + 1}"
        state = played(state, rows, each, label, rules.EARLY, two_valued=two_valued, importance=OUTCOME_IMPORTANCE)
    if check:
        state = sized(state, rows, rounds * math.sqrt(check), f"{name}: last residual sizes")
    return state


def _played_late(
    state: State, rows: MomentRows, mu: float, name: str, doubt: np.ndarray, two_valued: bool, left: int
) -> State:
    """A round in which m matters as far as errors of it end in the effect: as far as π is in doubt. What the last one
    finds of m comes too late, and what joins in it could not be set right."""
    confounds = float(doubt[1:].sum()) if left > 1 else 0.0
    if left > 1:
        state = deepened(state)
    rows.describe(state.basis)
    return played(
        state, rows, mu, name, rules.LATE, two_valued=two_valued, importance=LATE_IMPORTANCE + confounds, left=left
    )


def _together(
    state: State, propensity: Function, place: Place, doubt: np.ndarray, treated: float, *, finished: bool
) -> Together:
    basis, (outcome, effect) = state.basis, state.beliefs
    confounding = float((outcome.variance[1 : len(doubt)] * doubt[1:]).sum())
    block = dataclasses.replace(state.blocks[1], evidence=state.blocks[1].evidence.favouring(outcome))
    start = EffectStart(basis, state.mean_error, block, state.sizes, place.scale, treated, confounding, finished)
    return Together(
        propensity=propensity,
        outcome=lambda x: place.centre + basis.at(x) @ outcome.mean,
        effect=lambda x: basis.at(x) @ effect.mean,
        start=start,
    )
