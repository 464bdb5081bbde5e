"""Public facts about a table, declared before any row is read.

Nothing is inferred from rows: bounds, levels and the outcome range come from a codebook or from domain
knowledge. A schema is written by hand or as TOML, and the encoding of covariates follows from it alone.
"""

import math
import sys
import tomllib
from collections.abc import Iterator
from numbers import Real
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from dpcate.errors import SchemaError
from dpcate.files import read_bytes, write_atomically

Level = str | int | bool
UNFILLED = "FILL IN"  # what a template has wherever a fact is still to be declared
NEAREST_TYPICAL = 1e-6  # how near a bound the typical value may lie, as a part of the range
LARGEST_OUTCOME = 1e60  # the widest range of an outcome: its fourth power must be a number


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="number"):
    """A numeric covariate within public bounds; values outside are clipped.

    `typical` is a public guess at what most people have, where that is near one of the bounds (incomes, counts, waiting
    times): the scale is then stretched there and compressed at the far end, as by a logarithm, with this value in its
    middle. `reference` is where it rests in reports while another covariate varies; the typical value if not declared,
    else the middle.
    """

    low: float
    high: float
    unit: str | None = None
    reference: float | None = None
    typical: float | None = None

    def __post_init__(self) -> None:
        _require_bounds("a number", self.low, self.high)
        _require_unit("a number", self.unit)
        _settle(self, low=float(self.low), high=float(self.high))
        if self.reference is not None:
            _require_reference(_is_real(self.reference) and self.low <= self.reference <= self.high)
            _settle(self, reference=float(self.reference))
        if self.typical is not None:
            _require_typical(self.typical, self.low, self.high)
            _settle(self, typical=float(self.typical))

    @property
    def resting(self) -> float:
        """The value at which it rests in reports."""
        for declared in (self.reference, self.typical):
            if declared is not None:
                return declared
        return self.low + (self.high - self.low) / 2

    @property
    def bend(self) -> float:
        """How strongly the scale is stretched at its low end: the logarithm of how much larger steps are at the other,
        0 where they are equal."""
        if self.typical is None:
            return 0.0
        place = (self.typical - self.low) / (self.high - self.low)
        return 2 * (math.log1p(-place) - math.log(place))

    @property
    def width(self) -> int:
        """Columns it takes in the unit box."""
        return 1


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="category"):
    """A covariate with public levels; one indicator column per level.

    `reference` is the level at which it rests in reports; the first if not declared.
    """

    levels: list[Level]
    reference: Level | None = None

    def __post_init__(self) -> None:
        _require_levels("a category", self.levels, at_least=1)
        _settle(self, levels=list(self.levels))
        if self.reference is not None:
            _require_reference(level_text(self.reference) in map(level_text, self.levels))

    @property
    def resting(self) -> Level:
        """The level at which it rests in reports."""
        return self.levels[0] if self.reference is None else self.reference

    @property
    def width(self) -> int:
        return len(self.levels)


class Treatment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The column that says who was treated, and what it says."""

    name: str
    control: Level = 0
    treated: Level = 1

    def __post_init__(self) -> None:
        _require_name("the treatment", self.name)
        _require_levels("the treatment", [self.control, self.treated], at_least=2)


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome column and its public range; values outside are clipped.

    `binary` declares that it only takes its two bounds (died or not): its residuals are then never clipped.
    """

    name: str
    low: float
    high: float
    unit: str | None = None
    binary: bool = False

    def __post_init__(self) -> None:
        _require_name("the outcome", self.name)
        _require_bounds("the outcome", self.low, self.high)
        if not 1 / LARGEST_OUTCOME <= self.high - self.low <= LARGEST_OUTCOME:
            raise SchemaError("the outcome's bounds must be 1e-60 to 1e60 apart: change its unit")
        _require_unit("the outcome", self.unit)
        if not isinstance(self.binary, bool):
            raise SchemaError("binary must be true or false: does the outcome only take its two bounds?")
        _settle(self, low=float(self.low), high=float(self.high))

    @property
    def range(self) -> float:
        return self.high - self.low


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Covariates, treatment, outcome, and how many rows one person may own."""

    covariates: dict[str, Number | Category]
    treatment: Treatment | str
    outcome: Outcome
    person: str | None = None
    max_rows_per_person: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.treatment, str):
            _settle(self, treatment=Treatment(self.treatment))
        _require_types(self)
        if not self.covariates:
            raise SchemaError("a schema needs at least one covariate")
        names = [*self.covariates, self.treatment.name, self.outcome.name]
        names += [self.person] if self.person is not None else []
        for name in names:
            _require_name("a column", name)
        if len(set(names)) < len(names):
            raise SchemaError("a column may play one role only: covariate, treatment, outcome or person")
        if self.max_rows_per_person < 1:
            raise SchemaError("max_rows_per_person must be at least 1")
        if self.person is None and self.max_rows_per_person > 1:
            raise SchemaError(
                "max_rows_per_person above 1 needs the person column that says which rows belong together"
            )

    @property
    def columns(self) -> list[str]:
        """Every column that a table must have."""
        person = [self.person] if self.person is not None else []
        return [*self.covariates, self.treatment.name, self.outcome.name, *person]

    @property
    def width(self) -> int:
        """Columns of the encoded covariates, q in the theory."""
        return sum(covariate.width for covariate in self.covariates.values())

    def to_toml(self) -> str:
        """The schema as a TOML document that `from_toml` reads back to an equal schema."""
        return tomli_w.dumps(self.to_document())

    def to_document(self) -> dict[str, Any]:
        """Plain tables and values, in the layout of a schema file."""
        plain = _without_none(msgspec.to_builtins(self))
        if not self.outcome.binary:
            del plain["outcome"]["binary"]
        if self.treatment == Treatment(self.treatment.name):
            plain["treatment"] = self.treatment.name
        person, rows = plain.pop("person", None), plain.pop("max_rows_per_person")
        if person is not None:
            plain["person"] = {"column": person, "max_rows": rows}
        return plain

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            problem = str(error)
        else:
            return cls.from_document(document)
        raise SchemaError(f"the schema is not valid TOML: {problem}")

    @classmethod
    def from_document(cls, document: Any) -> "Schema":
        """The schema in a document with the layout of a schema file."""
        _require_filled_in(document)
        try:
            return msgspec.convert(_flattened(document), cls)
        except msgspec.ValidationError as error:
            problem = " ".join(str(error).split())
        raise SchemaError(f"the schema is not usable: {problem}")

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        raw = read_bytes(path, "schema file")
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = None
        if text is None:
            raise SchemaError("the schema file is not UTF-8 text")
        return cls.from_toml(text)

    def save(self, path: str | Path) -> None:
        write_atomically(path, self.to_toml().encode())


class _Person(msgspec.Struct, forbid_unknown_fields=True):
    column: str
    max_rows: int = 1


def _flattened(document: Any) -> Any:
    if not isinstance(document, dict) or "person" not in document:
        return document
    if "max_rows_per_person" in document:
        raise SchemaError("write max_rows inside the [person] table of the schema file")
    person = msgspec.convert(document["person"], _Person)
    return {**document, "person": person.column, "max_rows_per_person": person.max_rows}


def _require_filled_in(document: Any) -> None:
    unfilled = list(_unfilled(document, depth=4))
    if unfilled:
        shown = ", ".join(unfilled[:6]) + (f" and {len(unfilled) - 6} more" if len(unfilled) > 6 else "")
        raise SchemaError(
            f"the schema still has to be filled in: {shown}; take the facts from the codebook, never from the rows"
        )


def _unfilled(value: Any, depth: int, path: str = "") -> Iterator[str]:
    """Where the document says UNFILLED, no deeper than a schema goes."""
    if value == UNFILLED:
        yield path
    elif isinstance(value, dict) and depth:
        for key, item in value.items():
            yield from _unfilled(item, depth - 1, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and UNFILLED in value:
        yield path


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return value


def _settle(struct: msgspec.Struct, **fields: Any) -> None:
    """Give fields their plain form once, while a frozen struct is being made."""
    for name, value in fields.items():
        msgspec.structs.force_setattr(struct, name, value)


def _require_types(schema: Schema) -> None:
    if not isinstance(schema.covariates, dict) or not all(
        isinstance(covariate, Number | Category) for covariate in schema.covariates.values()
    ):
        raise SchemaError("covariates must map column names to dpcate.Number(low, high) or dpcate.Category(levels)")
    if not isinstance(schema.treatment, Treatment):
        raise SchemaError("treatment must be a column name or a dpcate.Treatment")
    if not isinstance(schema.outcome, Outcome):
        raise SchemaError("outcome must be a dpcate.Outcome(name, low, high)")
    if isinstance(schema.max_rows_per_person, bool) or not isinstance(schema.max_rows_per_person, int):
        raise SchemaError("max_rows_per_person must be a whole number")


def _require_name(what: str, name: Any) -> None:
    if not isinstance(name, str) or not name.strip() or len(name.splitlines()) > 1:
        raise SchemaError(f"{what} needs a column name, on one line")


def _require_unit(what: str, unit: Any) -> None:
    if not isinstance(unit, str | None):
        raise SchemaError(f"the unit of {what} must be text")


def _require_reference(fits: bool) -> None:
    if not fits:
        raise SchemaError("a reference value must be one that its covariate can take: within its bounds or levels")


def _require_typical(typical: Any, low: float, high: float) -> None:
    margin = NEAREST_TYPICAL * (high - low)
    if not _is_real(typical) or not low + margin <= typical <= high - margin:
        raise SchemaError(
            "a typical value must lie between the bounds, on neither of them; for a count that is mostly zero take 1"
        )


def _is_real(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and abs(value) <= sys.float_info.max


def _require_bounds(what: str, low: Any, high: Any) -> None:
    for bound in (low, high):
        if not _is_real(bound):
            raise SchemaError(
                f"{what} needs finite public bounds: take low and high from the codebook or from what is "
                "physically possible, never from the rows"
            )
    if not low < high or not math.isfinite(float(high) - float(low)):
        raise SchemaError(f"{what} needs low < high, with a finite distance between them; swap or correct the bounds")


def _require_levels(what: str, levels: Any, at_least: int) -> None:
    if not isinstance(levels, list | tuple) or len(levels) < at_least:
        raise SchemaError(f"{what} needs its public levels, at least {at_least}: list every value that can occur")
    if not all(type(level) in (str, int, bool) for level in levels):
        raise SchemaError(f"the levels of {what} must be plain text, whole numbers or true/false")
    texts = [level_text(level) for level in levels]
    if "" in texts or len(set(texts)) < len(texts):
        raise SchemaError(f"the levels of {what} must be distinct and not empty")


def level_text(value: Any) -> str:
    """The text by which levels and cells compare: 1, 1.0 and "1" are one level, as are True and "TRUE"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    return text.lower() if text.lower() in ("true", "false") else text
