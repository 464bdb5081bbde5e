"""What may be published: a frozen, versioned JSON document without a row in it.

Loading validates every field, refuses what it does not know, and executes nothing.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from dpcate import query
from dpcate.errors import ReleaseError
from dpcate.files import read_bytes, write_atomically
from dpcate.findings import Diagnostics
from dpcate.models import Model
from dpcate.schema import Schema

FORMAT_VERSION = 1
_LARGEST = 1e100  # of the numbers in a model: their squares and products stay finite


class GaussianSpent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gaussian"):
    mu: float


class SampledSpent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="sampled gaussian"):
    noise_multiplier: float
    sampling_rate: float
    steps: int


class DeclaredSpent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="declared"):
    epsilon: float
    delta: float


class ChargedMechanism(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One paid release: what it was, which rows it read, what it spent, its sensitivity, noise and proof page.

    Sensitivity and noise are None where a model of somebody else's, or an unproven scale, was charged.
    """

    name: str
    mechanism: str
    rows: str
    spent: GaussianSpent | SampledSpent | DeclaredSpent
    sensitivity: float | None
    sd: float | None
    proof: str

    @property
    def price(self) -> str:
        """What was spent, for people."""
        if isinstance(self.spent, GaussianSpent):
            return f"μ = {self.spent.mu:.4g}"
        if isinstance(self.spent, SampledSpent):
            spent = self.spent
            return f"{spent.steps} steps, rate {spent.sampling_rate:.3g}, z = {spent.noise_multiplier:.3g}"
        return f"({self.spent.epsilon:.4g}, {self.spent.delta:.3g})-DP"

    @property
    def numbers(self) -> list[float]:
        optional = [number for number in (self.sensitivity, self.sd) if number is not None]
        return optional + [getattr(self.spent, name) for name in self.spent.__struct_fields__]


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the effect was estimated; every entry was fixed before a row was read."""

    learner: str
    second_stage: str
    nuisance: str
    split: Literal["crossfit", "disjoint", "none"]
    propensity_floor: float
    calibration: Literal["proven", "paper"]


class Average(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effect averaged over the private population, paid for, and the sd of its error."""

    value: float
    sd: float


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON layout."""

    format: Literal["dpcate-release"]
    version: Literal[1]
    library: str
    private: bool
    guarantee: Literal["proven", "unproven"]
    proof: str
    epsilon: float
    delta: float
    neighbours: Literal["replace-one", "add-or-remove-one"]
    persons: int
    schema: dict[str, Any]
    spec: Spec
    charges: list[ChargedMechanism]
    model: Model
    average: Average | None
    diagnostics: Diagnostics | None


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A private effect function and everything that may be said about how it was made.

    `private` is False when reproducible noise was used: such a release protects nobody. `persons` is the
    public number of persons under replace-one, a noisy count under add-or-remove-one.
    """

    library: str
    private: bool
    guarantee: Literal["proven", "unproven"]
    proof: str
    epsilon: float
    delta: float
    neighbours: Literal["replace-one", "add-or-remove-one"]
    persons: int
    schema: Schema
    spec: Spec
    charges: list[ChargedMechanism]
    model: Model
    average: Average | None
    diagnostics: Diagnostics | None

    def __post_init__(self) -> None:
        numbers = [self.epsilon, self.delta, self.spec.propensity_floor]
        if not all(math.isfinite(number) and number > 0 for number in numbers) or self.delta >= 1:
            raise ReleaseError(
                "the privacy parameters of a release must be positive finite numbers, with delta below 1"
            )
        if not all(math.isfinite(number) and number >= 0 for charge in self.charges for number in charge.numbers):
            raise ReleaseError("the charges of a release must be finite numbers and not negative")
        if not all(abs(number) <= _LARGEST for number in _numbers(msgspec.to_builtins(self.model))):
            raise ReleaseError(f"the numbers in the model of a release must not exceed {_LARGEST:g}")
        if self.average and not (math.isfinite(self.average.value) and 0 <= self.average.sd < math.inf):
            raise ReleaseError("the average effect of a release must be a finite number, and so must its sd")
        if self.model.width != self.schema.width:
            raise ReleaseError("the model of a release does not fit its schema")

    def effect(self, X: Any) -> np.ndarray:
        """The private treatment effect at each row of X; NaN where a row of X lacks a usable value."""
        return query.effect(self, X)

    def effect_interval(self, X: Any, alpha: float = 0.1, simultaneous: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) at level 1 − alpha for privacy noise and sampling noise.

        The level is for each row of X alone, or with `simultaneous` for all of them together.
        """
        return query.effect_interval(self, X, alpha, simultaneous)

    def ate(self, X: Any = None) -> float:
        """The effect averaged over the private population, or over the public rows X if they are given."""
        return query.ate(self, X)

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """(low, high) at level 1 − alpha for the average effect over the private population."""
        return query.ate_interval(self, alpha)

    def to_json(self) -> bytes:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        fields["schema"] = self.schema.to_document()
        document = _Document(format="dpcate-release", version=FORMAT_VERSION, **fields)
        return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> "Release":
        try:
            document = msgspec.json.decode(content, type=_Document)
            fields = {name: getattr(document, name) for name in cls.__struct_fields__}
            return cls(**{**fields, "schema": Schema.from_document(document.schema)})
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            problem = str(error) if isinstance(error, msgspec.ValidationError | ReleaseError) else "malformed content"
        raise ReleaseError(f"this is not a usable dpcate release: {problem}")

    def save(self, path: str | Path) -> None:
        write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Release":
        return cls.from_json(read_bytes(path, "release file"))


def _numbers(value: Any) -> Iterator[float]:
    """Every number in a plain document."""
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield value
