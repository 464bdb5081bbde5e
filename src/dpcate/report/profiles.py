"""Whose effects a report lists: profiles that somebody declared, or the reference profile with one change at a time."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpcate.encoding import cell_text, decode_covariates, encode_covariates, numbers, value_at
from dpcate.errors import InputError
from dpcate.models import PointsModel
from dpcate.release import Release
from dpcate.report.words import value
from dpcate.schema import Category, Schema
from dpcate.tables import header, read_columns

MOST_PROFILES = 200
_MOST_CHANGES = 16


@dataclass(frozen=True)
class Profiles:
    """Covariates by name, and the columns of text that describe each profile to a reader."""

    columns: dict[str, np.ndarray]
    shown: dict[str, list[str]]


def read_profiles(schema: Schema, path: str | Path) -> Profiles:
    """Profiles from a table; covariates that it lacks, and empty cells, rest at their reference values."""
    names = header(path)
    given = [name for name in names if name in schema.covariates]
    if not given:
        raise InputError(f"the profiles need at least one covariate of the release: {', '.join(schema.covariates)}")
    cells = read_columns(path, names)
    count = len(cells[given[0]])
    if not 0 < count <= MOST_PROFILES:
        raise InputError(f"a report takes between 1 and {MOST_PROFILES} profiles; use `dpcate effect` for more")
    columns = {
        name: _filled(covariate.resting, cells[name]) if name in given else _repeated(covariate.resting, count)
        for name, covariate in schema.covariates.items()
    }
    _require_declared(schema, columns)
    own = {name: [cell_text(cell) for cell in cells[name]] for name in names if name not in given}
    return Profiles(columns, own | _described(schema, {name: columns[name] for name in given}))


def usual_profiles(release: Release) -> Profiles:
    """The declared points of a release that has only those, else the reference profile and changes of it."""
    if isinstance(release.model, PointsModel):
        columns = decode_covariates(release.schema, np.asarray(release.model.points))
        return Profiles(columns, _described(release.schema, columns))
    covariates = release.schema.covariates
    rest = {name: covariate.resting for name, covariate in covariates.items()}
    profiles, described = [rest], ["Reference profile"]
    for name, covariate in covariates.items():
        changes = [cell for cell in _changes(covariate) if cell != covariate.resting]
        if len(profiles) + len(changes) > _MOST_CHANGES:
            break
        profiles += [{**rest, name: cell} for cell in changes]
        described += [f"{name}: {value(covariate, cell)}" for cell in changes]
    columns = {name: np.array([row[name] for row in profiles], dtype=object) for name in covariates}
    return Profiles(columns, {"Profile": described})


def _changes(covariate) -> list:
    """Every level, or one and three quarters of the way along the scale."""
    if isinstance(covariate, Category):
        return list(covariate.levels)
    return value_at(covariate, np.array([0.25, 0.75])).tolist()


def _filled(rest, cells: np.ndarray) -> np.ndarray:
    return np.array([cell if cell_text(cell) else rest for cell in cells], dtype=object)


def _repeated(rest, count: int) -> np.ndarray:
    return np.array([rest] * count, dtype=object)


def _described(schema: Schema, columns: dict[str, np.ndarray]) -> dict[str, list[str]]:
    return {name: [value(schema.covariates[name], cell) for cell in cells] for name, cells in columns.items()}


def _require_declared(schema: Schema, columns: dict[str, np.ndarray]) -> None:
    """Refuse what `effect` would clip or leave blank: a table for readers must say what it shows."""
    for name, covariate in schema.covariates.items():
        if isinstance(covariate, Category):
            alone = Schema(covariates={name: covariate}, treatment=schema.treatment, outcome=schema.outcome)
            fits = encode_covariates(alone, {name: columns[name]})[1]
            remedy = "one of its declared levels"
        else:
            found = numbers(columns[name])
            fits = (found >= covariate.low) & (found <= covariate.high)
            remedy = "a number within its declared bounds"
        if not fits.all():
            raise InputError(f"profile {int(np.argmin(fits)) + 1}: {name} must be {remedy}")
