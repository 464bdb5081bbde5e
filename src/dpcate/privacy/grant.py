"""What all fits on one dataset may spend together, what they spent, and what is left.

A grant of (ε, δ) has two parts, both fixed when it is given, before anything that they pay for is seen:
    μ        for fits whose releases are all Gaussian: the squares of their μ add up, exactly;
    (ε', δ') set aside for any other fit, and taken as sums, because no theorem allows less when each fit may
             be chosen in the light of the ones before (proofs/ledger.md).
Guarantee 6: whatever is charged, in whatever order, the composition of all charges is (ε, δ)-DP.
"""

import math
from dataclasses import dataclass

from dpcate.errors import BudgetError, InputError
from dpcate.privacy.accounting import OVERDRAFT_TOLERANCE, Declared, Gaussian, epsilon_of, largest_gaussian
from dpcate.privacy.budget import Budget, Neighbours, gdp_epsilon

Spent = Gaussian | Declared


@dataclass(frozen=True, kw_only=True)
class Request:
    """A fit as the ledger sees it before a row is read; `person` is the column that says who is one person."""

    budget: Budget
    gaussian: bool
    person: str | None = None


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The promise for one dataset, its two parts, and the privacy unit for which it is made."""

    budget: Budget
    mu: float
    declared: Declared
    person: str | None = None

    @classmethod
    def of(
        cls,
        *,
        epsilon: float,
        delta: float,
        neighbours: Neighbours = "replace-one",
        declared: tuple[float, float] = (0.0, 0.0),
        person: str | None = None,
    ) -> "Grant":
        """The largest μ that (ε, δ) covers next to what is set aside as `declared`, (ε', δ')."""
        budget = Budget(epsilon=epsilon, delta=delta, neighbours=neighbours)
        if not all(math.isfinite(size) and size >= 0 for size in declared) or (declared[1] and not declared[0]):
            raise InputError("what is set aside needs an epsilon above 0 and a delta of at least 0")
        if declared[0] > epsilon or declared[1] > delta:
            raise InputError("a grant cannot set aside more than it grants")
        if person is not None and not (person and person.isprintable()):
            raise InputError("the person column of a grant must have a printable name")
        aside = Declared(*declared)
        return cls(budget=budget, mu=_mu_beside(aside, budget), declared=aside, person=person)

    def covers(self, other: "Grant") -> bool:
        """Whether each part is at least that of the other."""
        parts = zip(self._parts(), other._parts(), strict=True)
        return all(mine >= theirs for mine, theirs in parts)

    def _parts(self) -> tuple[float, ...]:
        return self.budget.epsilon, self.budget.delta, self.mu, self.declared.epsilon, self.declared.delta


def _mu_beside(declared: Declared, budget: Budget) -> float:
    if not declared.epsilon:
        return budget.mu
    if declared.epsilon == budget.epsilon:
        return 0.0
    try:
        return largest_gaussian(budget, (declared,))
    except BudgetError:
        return 0.0


@dataclass(frozen=True)
class Account:
    """A grant and all that was charged to it."""

    grant: Grant
    charges: tuple[Spent, ...] = ()

    def event_for(self, request: Request) -> Spent | None:
        """The event that covers the whole fit and that the grant still covers; None if there is none.

        A fit of Gaussian releases is μ-GDP with the μ of its own budget. Any fit is (ε, δ)-DP.
        """
        budget = request.budget
        if request.gaussian and _within(budget.mu**2 + self._mu_squared(), self.grant.mu**2):
            return Gaussian(budget.mu)
        epsilon, delta = self._declared()
        epsilons, deltas = budget.epsilon + epsilon, budget.delta + delta
        if _within(epsilons, self.grant.declared.epsilon) and _within(deltas, self.grant.declared.delta):
            return Declared(budget.epsilon, budget.delta)
        return None

    def epsilon_spent(self) -> float:
        """The ε, at the grant's δ, of all charges composed."""
        return epsilon_of(self.charges, self.grant.budget.delta, self.grant.budget.neighbours)

    def epsilon_left(self, delta: float | None = None) -> float:
        """The largest ε of a Gaussian fit at this δ (the grant's if None) that is still covered, rounded down."""
        delta = delta if delta is not None else self.grant.budget.delta
        left = math.sqrt(max(self.grant.mu**2 - self._mu_squared(), 0.0))
        epsilon = gdp_epsilon(left, delta) if left > 1e-6 * self.grant.mu else 0.0
        unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3) if epsilon > 0 else 1.0
        return math.floor(epsilon / unit) * unit

    def declared_left(self) -> Declared:
        """What is left of the part that was set aside."""
        epsilon, delta = self._declared()
        whole = self.grant.declared
        return Declared(max(whole.epsilon - epsilon, 0.0), max(whole.delta - delta, 0.0))

    def _mu_squared(self) -> float:
        return math.fsum(charge.mu**2 for charge in self.charges if isinstance(charge, Gaussian))

    def _declared(self) -> tuple[float, float]:
        declared = [charge for charge in self.charges if isinstance(charge, Declared)]
        return math.fsum(charge.epsilon for charge in declared), math.fsum(charge.delta for charge in declared)


def _within(spent: float, whole: float) -> bool:
    return spent <= whole * (1 + OVERDRAFT_TOLERANCE)
