"""From the columns of a file to a schema: a template to fill in, and a check of what was filled in.

Both look at column names and at the types that the file itself declares, never at a cell.
"""

import math
from pathlib import Path

import tomli_w

from dpcate.errors import DataError, SchemaError
from dpcate.schema import UNFILLED, Category, Number, Schema, level_text
from dpcate.tables import UNDECLARED, UNUSABLE, column_types

_HEAD = f"""\
# Public facts about the table, declared before any row is read.
# Replace every "{UNFILLED}" by what a codebook or common knowledge says, never by what the rows say: this file is
# published, and a smallest or largest value copied from the rows is somebody's value.

treatment = "{UNFILLED}"  # the 0/1 column that says who was treated, for example "ventilated"

[outcome]
name = "{UNFILLED}"  # the column of what the treatment may change, for example "rbc"
low = "{UNFILLED}"  # the smallest value that is possible, for example 2.0
high = "{UNFILLED}"  # the largest, for example 7.0
# unit = "million/µl"
# binary = true  # if it takes its two bounds only, for example died (1) or not (0)

# If a person may own several rows:
# [person]
# column = "subject_id"
# max_rows = 1

# Every column of the file follows. Keep those that the effect may depend on and that were known before the treatment;
# delete the others, among them the treatment, the outcome and the person.
"""

_NUMBER = f"""\
kind = "number"
low = "{UNFILLED}"  # for example 18.0
high = "{UNFILLED}"  # for example 100.0
# unit = "years"
# typical = 65.0  # what most people have, roughly, if that is near one of the bounds (incomes, counts)
# reference = 65.0  # where it rests in reports while another column varies; if not given, typical or the middle
"""

_CATEGORY = f"""\
kind = "category"
levels = ["{UNFILLED}"]  # every value that is possible, for example {{example}}
# reference = {{reference}}  # where it rests in reports while another column varies; the first if not given
"""

_EITHER = f"""\
kind = "{UNFILLED}"  # "number", or "category" with levels = ["f", "m"] in place of low and high
low = "{UNFILLED}"  # for example 18.0
high = "{UNFILLED}"  # for example 100.0
"""

_BODIES = {
    "number": _NUMBER,
    "text": _CATEGORY.format(example='["f", "m"]', reference='"f"'),
    "true or false": _CATEGORY.format(example="[false, true]", reference="false"),
    UNDECLARED: _EITHER,
}


def schema_template(path: str | Path) -> str:
    """A schema file with every fact left to fill in."""
    types = column_types(path)
    if Path(path).suffix.lower() not in (".parquet", ".pq"):
        _require_a_header(Path(path), list(types))
    return "\n".join([_HEAD, *(_table(name, declared) for name, declared in types.items())])


def mismatches(schema: Schema, path: str | Path) -> list[str]:
    """What a curator should know about the file under this schema; what cannot work at all is refused."""
    types = column_types(path, schema.columns)
    unusable = [name for name, declared in types.items() if declared == UNUSABLE]
    if unusable:
        raise DataError(f"these columns hold dates or nested values; give numbers or text: {', '.join(unusable)}")
    numbers = [name for name, covariate in schema.covariates.items() if isinstance(covariate, Number)]
    return [
        f"{name} is declared as a number, and the file holds text: cells that are no numbers will count as missing"
        for name in [*numbers, schema.outcome.name]
        if types[name] == "text"
    ] + [
        f"{name} is declared as true or false, and its levels are others: its cells will count as missing"
        for name, covariate in schema.covariates.items()
        if types[name] == "true or false" and isinstance(covariate, Category) and not _two_valued(covariate)
    ]


def _table(name: str, declared: str) -> str:
    if not name.strip() or len(name.splitlines()) > 1:
        raise SchemaError("every column of the file needs a name, on one line; rename those that have none")
    key = tomli_w.dumps({name: 0}).removesuffix(" = 0\n")
    if declared == UNUSABLE:
        return f"# {key}: {UNUSABLE}, which cannot be used; make a number of it first, such as an age\n"
    return f"[covariates.{key}]  # type in the file: {declared}\n{_BODIES[declared]}"


def _require_a_header(path: Path, names: list[str]) -> None:
    """Without a header the first line is somebody's row, and its cells must not be shown as names."""
    if any(_is_number(name) for name in names):
        raise DataError(
            f"the first line of {path.name!r} holds numbers where column names should stand; add a line of names"
        )


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def _two_valued(covariate: Category) -> bool:
    return set(map(level_text, covariate.levels)) <= {"0", "1", "true", "false"}
