"""What has been spent: events, their composition, and the accountant that refuses an overdraft.

Gaussian releases compose in closed form (μ² adds up); anything else goes through privacy-loss
distributions. Charges name the part of the rows they read. A person's rows lie in one part, so what a
person can lose is the composition of the charges on that part and on all rows (proofs/composition.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dpcate.errors import BudgetError, InputError
from dpcate.privacy.budget import Budget, Neighbours, gdp_delta, gdp_epsilon
from dpcate.privacy.sensitivity import Sensitivity

OVERDRAFT_TOLERANCE = 1e-9
COARSE = 8.0  # a grid this many times coarser costs as much less, and decides all but close calls


@dataclass(frozen=True)
class Gaussian:
    """A release that is μ-GDP under the accountant's neighbour relation."""

    mu: float


@dataclass(frozen=True)
class SampledGaussian:
    """Steps of a Gaussian sum over a Poisson sample; `noise_multiplier` is sd / norm clip of one person."""

    noise_multiplier: float
    sampling_rate: float
    steps: int


@dataclass(frozen=True)
class Declared:
    """A release that somebody else proved to be (ε, δ)-DP under the accountant's neighbour relation."""

    epsilon: float
    delta: float


Event = Gaussian | SampledGaussian | Declared

Part = int | tuple[int, ...] | None  # of the rows: one part, several, or all rows


def epsilon_of(events: Sequence[Event], delta: float, neighbours: Neighbours) -> float:
    """The smallest ε for which the composed events are (ε, δ)-DP."""
    if mu := _all_gaussian(events):
        return gdp_epsilon(mu, delta)
    return float(_composed_pld(events, neighbours).get_epsilon_for_delta(delta)) if events else 0.0


def delta_of(events: Sequence[Event], epsilon: float, neighbours: Neighbours, coarsening: float = 1.0) -> float:
    """The smallest δ for which the composed events are (ε, δ)-DP; a coarser grid errs upwards by more."""
    if mu := _all_gaussian(events):
        return gdp_delta(mu, epsilon)
    return float(_composed_pld(events, neighbours, coarsening).get_delta_for_epsilon(epsilon)) if events else 0.0


def _all_gaussian(events: Sequence[Event]) -> float | None:
    """√Σμ² if every event is Gaussian (and there is one), else None."""
    mus = [event.mu for event in events if isinstance(event, Gaussian)]
    return math.sqrt(math.fsum(mu * mu for mu in mus)) if mus and len(mus) == len(events) else None


def _composed_pld(events: Sequence[Event], neighbours: Neighbours, coarsening: float = 1.0) -> Any:
    """One privacy-loss distribution for all events; Gaussians are merged in closed form first.

    The discretisation errs upwards by about steps·grid², so the grid shrinks with the number of steps.
    """
    steps = sum(event.steps for event in events if isinstance(event, SampledGaussian))
    grid = coarsening * min(1e-4, 2e-3 / math.sqrt(max(steps, 1)))
    first, *rest = [_pld(event, neighbours, grid) for event in _merged(events)]
    for other in rest:
        first = first.compose(other)
    return first


def _merged(events: Sequence[Event]) -> tuple[Event, ...]:
    """The same in fewer events: all Gaussians as one, its μ rounded up in the tenth digit, so that sums in another
    order are found among what is remembered."""
    mu = _all_gaussian([event for event in events if isinstance(event, Gaussian)])
    others = [event for event in events if not isinstance(event, Gaussian)]
    return (Gaussian(_rounded_up(mu)), *others) if mu else tuple(others)


def _rounded_up(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 10)
    return math.ceil(value / unit) * unit


@lru_cache(maxsize=64)
def _pld(event: Event, neighbours: Neighbours, grid: float) -> Any:
    """dp-accounting's replace-one takes sd / clip with sensitivity 2·clip as noise multiplier, hence the 2/μ."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    replace = neighbours == "replace-one"
    relation = NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(event, Gaussian):
        return pld.from_gaussian_mechanism(
            (2.0 if replace else 1.0) / event.mu, value_discretization_interval=grid, neighboring_relation=relation
        )
    if isinstance(event, SampledGaussian):
        return pld.from_gaussian_mechanism(
            event.noise_multiplier,
            value_discretization_interval=grid,
            sampling_prob=event.sampling_rate,
            neighboring_relation=relation,
        ).self_compose(event.steps)
    return pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(event.epsilon, event.delta), value_discretization_interval=grid
    )


@lru_cache(maxsize=256)
def cheapest_training(
    budget: Budget, *, sampling_rate: float, steps: int, times: int = 1, spent: tuple[Event, ...] = ()
) -> SampledGaussian:
    """The training with least noise, to a thousandth, of which `times` fit into what the budget has left.

    A coarse grid errs upwards: what fits by it fits, and one that is wrong about what does not costs noise only.
    """

    def fits(multiplier: float) -> bool:
        events = [*spent, *[SampledGaussian(multiplier, sampling_rate, steps)] * times]
        rough = delta_of(events, budget.epsilon, budget.neighbours, COARSE)
        if not 0.99 < rough / budget.delta < 1.05:
            return rough <= budget.delta
        return delta_of(events, budget.epsilon, budget.neighbours) <= budget.delta

    return SampledGaussian(_smallest(fits, start=1.0), sampling_rate, steps)


@lru_cache(maxsize=256)
def largest_gaussian(budget: Budget, spent: tuple[Event, ...]) -> float:
    """The largest μ of a Gaussian release that the budget still covers after the events already spent."""
    if mu := _all_gaussian(spent):
        return math.sqrt(max(budget.mu**2 - mu**2, 0.0))
    if not spent:
        return budget.mu

    def fits(inverse_mu: float) -> bool:
        events = [*spent, Gaussian(1 / inverse_mu)]
        return delta_of(events, budget.epsilon, budget.neighbours) <= budget.delta

    return 1 / _smallest(fits, start=1 / budget.mu)


def _smallest(fits: Callable[[float], bool], start: float) -> float:
    """The smallest value that fits, to a thousandth, for a condition that holds from some value on."""
    high = start
    while not fits(high):
        high *= 2
        if high > 1e6 * start:
            raise BudgetError("the privacy budget is spent: nothing is left for the next release")
    low = high / 2
    while low > 1e-9 * start and fits(low):
        low, high = low / 2, low
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One paid release, as the certificate lists it.

    `part` says which parts of the rows were read; sensitivity and sd are None when they are not ours to state.
    """

    name: str
    mechanism: str
    event: Event
    sensitivity: Sensitivity | None
    sd: float | None
    part: Part = None


class Accountant:
    """Collects charges against one budget and refuses the one that would overdraw it.

    A fit that a ledger knows as Gaussian is held to that by `gaussian`. `reserve` pays for the whole budget; it
    is called once, before the first charge is accepted, hence before the first noise is drawn.
    """

    def __init__(
        self,
        budget: Budget,
        parts: int = 1,
        *,
        gaussian: bool = False,
        reserve: Callable[[], None] = lambda: None,
    ) -> None:
        if parts < 1:
            raise InputError("rows are divided into at least one part")
        self.budget = budget
        self.parts = parts
        self._gaussian = gaussian
        self._reserve = reserve
        self._charges: list[Charge] = []
        self._spent: list[list[Event]] = [[] for _ in range(parts)]  # by part, since something was set apart
        self._apart_epsilon = 0.0

    @property
    def charges(self) -> tuple[Charge, ...]:
        return tuple(self._charges)

    def charge(self, charge: Charge) -> None:
        """Guarantee 1: after this returns, the total of any person is within the budget."""
        touched = self._touched(charge.part)
        if not touched or not set(touched) <= set(range(self.parts)):
            raise InputError("a charge names a part of the rows that does not exist")
        if self._gaussian and not isinstance(charge.event, Gaussian):
            raise BudgetError(f"this fit was announced as Gaussian, which the release '{charge.name}' is not")
        for part in touched:
            if not self._affordable([*self._spent[part], charge.event]):
                raise BudgetError(f"the privacy budget does not cover the release '{charge.name}'")
        if not self._charges:
            self._reserve()
        self._charges.append(charge)
        for part in touched:
            self._spent[part].append(charge.event)

    def set_apart(self, spent: Declared) -> None:
        """What was charged so far counts as (ε', δ'); what follows has (ε − ε', δ − δ'), and may be chosen by it.

        Privacy-loss distributions compose events that are fixed beforehand; guarantees that are added need not be
        (proofs/composition.md).
        """
        budget = self.budget
        for events in self._spent:
            if delta_of(events, spent.epsilon, budget.neighbours) > spent.delta * (1 + OVERDRAFT_TOLERANCE):
                raise BudgetError("what was charged so far is not covered by what is set apart for it")
        self.budget = Budget(
            epsilon=budget.epsilon - spent.epsilon, delta=budget.delta - spent.delta, neighbours=budget.neighbours
        )
        self._spent, self._apart_epsilon = [[] for _ in range(self.parts)], spent.epsilon

    def gaussian_left(self, part: Part = None) -> float:
        """The largest μ that a Gaussian release on this part (all rows if None) may still spend."""
        return min(largest_gaussian(self.budget, tuple(self._spent[each])) for each in self._touched(part))

    def training_left(self, *, sampling_rate: float, steps: int, part: Part = None) -> SampledGaussian:
        """The training with least noise that this part (all rows if None) can still pay for."""
        left = [
            cheapest_training(self.budget, sampling_rate=sampling_rate, steps=steps, spent=_merged(self._spent[each]))
            for each in self._touched(part)
        ]
        return max(left, key=lambda training: training.noise_multiplier)

    def epsilon_spent(self) -> float:
        """The ε, at the budget's δ, of the person who lost most."""
        budget = self.budget
        rest = max(epsilon_of(events, budget.delta, budget.neighbours) for events in self._spent)
        return self._apart_epsilon + rest

    def _touched(self, part: Part) -> tuple[int, ...]:
        if part is None:
            return tuple(range(self.parts))
        return part if isinstance(part, tuple) else (part,)

    def _affordable(self, events: Sequence[Event]) -> bool:
        budget = self.budget
        if mu := _all_gaussian(events):
            return mu <= budget.mu * (1 + OVERDRAFT_TOLERANCE)
        spent = delta_of(events, budget.epsilon, budget.neighbours)
        return spent <= budget.delta * (1 + OVERDRAFT_TOLERANCE)
