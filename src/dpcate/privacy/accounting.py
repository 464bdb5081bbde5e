"""What has been spent: events, their composition, and the accountant that refuses an overdraft.

Gaussian releases compose in closed form (μ² adds up); anything else goes through privacy-loss
distributions. Charges name the part of the rows they read. A person's rows lie in one part, so what a
person can lose is the composition of the charges on that part and on all rows (proofs/composition.md).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpcate.errors import BudgetError, InputError
from dpcate.privacy.budget import Budget, Neighbours, gdp_delta, gdp_epsilon
from dpcate.privacy.sensitivity import Sensitivity

_OVERDRAFT_TOLERANCE = 1e-9


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


def epsilon_of(events: Sequence[Event], delta: float, neighbours: Neighbours) -> float:
    """The smallest ε for which the composed events are (ε, δ)-DP."""
    if mu := _all_gaussian(events):
        return gdp_epsilon(mu, delta)
    return float(_composed_pld(events, neighbours).get_epsilon_for_delta(delta)) if events else 0.0


def delta_of(events: Sequence[Event], epsilon: float, neighbours: Neighbours) -> float:
    """The smallest δ for which the composed events are (ε, δ)-DP."""
    if mu := _all_gaussian(events):
        return gdp_delta(mu, epsilon)
    return float(_composed_pld(events, neighbours).get_delta_for_epsilon(epsilon)) if events else 0.0


def _all_gaussian(events: Sequence[Event]) -> float | None:
    """√Σμ² if every event is Gaussian (and there is one), else None."""
    mus = [event.mu for event in events if isinstance(event, Gaussian)]
    return math.sqrt(math.fsum(mu * mu for mu in mus)) if mus and len(mus) == len(events) else None


def _composed_pld(events: Sequence[Event], neighbours: Neighbours) -> Any:
    """One privacy-loss distribution for all events.

    The grid is finer than dp-accounting's default, which is loose for small ε over many steps. Under
    replace-one its noise multiplier is sd / clip with sensitivity 2·clip, hence the 2/μ.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    replace = neighbours == "replace-one"
    relation = NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE
    steps = sum(event.steps for event in events if isinstance(event, SampledGaussian))
    grid = 1e-4 if steps == 0 else min(1e-4, 0.01 / steps)

    def distribution(event: Event) -> Any:
        if isinstance(event, Gaussian):
            return pld.from_gaussian_mechanism(
                (2.0 if replace else 1.0) / event.mu,
                value_discretization_interval=grid,
                neighboring_relation=relation,
            )
        if isinstance(event, SampledGaussian):
            return pld.from_gaussian_mechanism(
                event.noise_multiplier,
                value_discretization_interval=grid,
                sampling_prob=event.sampling_rate,
                neighboring_relation=relation,
            ).self_compose(event.steps)
        return pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(event.epsilon, event.delta),
            value_discretization_interval=grid,
        )

    gaussians = [event for event in events if isinstance(event, Gaussian)]
    others = [event for event in events if not isinstance(event, Gaussian)]
    merged = [Gaussian(mu)] if (mu := _all_gaussian(gaussians)) else []
    first, *rest = [distribution(event) for event in (*merged, *others)]
    for other in rest:
        first = first.compose(other)
    return first


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One paid release, as the certificate lists it. `part` is None when all rows were read."""

    name: str
    mechanism: str
    event: Event
    sensitivity: Sensitivity
    sd: float
    part: int | None = None


class Accountant:
    """Collects charges against one budget and refuses the one that would overdraw it."""

    def __init__(self, budget: Budget, parts: int = 1) -> None:
        if parts < 1:
            raise InputError("rows are divided into at least one part")
        self.budget = budget
        self.parts = parts
        self._charges: list[Charge] = []

    @property
    def charges(self) -> tuple[Charge, ...]:
        return tuple(self._charges)

    def charge(self, charge: Charge) -> None:
        """Guarantee 1: after this returns, the total of any person is within the budget."""
        if charge.part is not None and not 0 <= charge.part < self.parts:
            raise InputError("a charge names a part of the rows that does not exist")
        touched = range(self.parts) if charge.part is None else (charge.part,)
        for part in touched:
            if not self._affordable([*self._events(part), charge.event]):
                raise BudgetError(f"the privacy budget does not cover the release '{charge.name}'")
        self._charges.append(charge)

    def epsilon_spent(self) -> float:
        """The ε, at the budget's δ, of the person who lost most."""
        budget = self.budget
        return max(epsilon_of(self._events(part), budget.delta, budget.neighbours) for part in range(self.parts))

    def _events(self, part: int) -> list[Event]:
        return [charge.event for charge in self._charges if charge.part in (None, part)]

    def _affordable(self, events: Iterable[Event]) -> bool:
        events, budget = list(events), self.budget
        if mu := _all_gaussian(events):
            return mu <= budget.mu * (1 + _OVERDRAFT_TOLERANCE)
        spent = delta_of(events, budget.epsilon, budget.neighbours)
        return spent <= budget.delta * (1 + _OVERDRAFT_TOLERANCE)
