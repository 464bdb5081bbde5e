"""Which diagnostics there are, and what each costs: public, the same for everybody, fixed before a row is read.

Overlap and outcome fit look at the models of treatment and outcome: each takes a share of the fit's μ². Heterogeneity
and calibration judge the effect, and on the rows that an effect was fitted on, any effect looks real. So they cost
people instead: one in five is held out of the fit, and what is asked of these is parallel to it.
"""

import math
from dataclasses import dataclass
from typing import Any

from dpcate.errors import InputError

SHARES = {"overlap": 0.03, "outcome": 0.03, "heterogeneity": 0.0, "calibration": 0.0}  # of the fit's μ²
ON_HELD_OUT = ("heterogeneity", "calibration")
NAMES = tuple(SHARES)


def share_of(name: str) -> float:
    """The share of the fit's μ² that a diagnostic takes."""
    return SHARES[name]


def needs_held_out(name: str) -> bool:
    """Whether people must be held out of the fit for a diagnostic."""
    return name in ON_HELD_OUT


@dataclass(frozen=True)
class Chosen:
    """The diagnostics of one fit."""

    names: tuple[str, ...] = ()

    @property
    def held_out(self) -> bool:
        return any(map(needs_held_out, self.names))

    @property
    def on_held_out(self) -> tuple[str, ...]:
        return tuple(filter(needs_held_out, self.names))

    def mu(self, name: str, total: float) -> float:
        """The μ of one that takes a share."""
        return total * math.sqrt(share_of(name))

    def rest(self, total: float) -> float:
        """The μ that is left for the fit."""
        return total * math.sqrt(1 - math.fsum(map(share_of, self.names)))


def chosen(names: Any) -> Chosen:
    """A list of names, in the library's order."""
    if isinstance(names, str) or not all(isinstance(name, str) and name in NAMES for name in _entries(names)):
        raise InputError(f"diagnostics must be a list of names out of {', '.join(NAMES)}")
    return Chosen(tuple(name for name in NAMES if name in names))


def _entries(names: Any) -> list[Any]:
    return list(names) if isinstance(names, list | tuple | set | frozenset) else [None]
