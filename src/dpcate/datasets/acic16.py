"""ACIC 2016: real covariates, simulated treatment and outcome, hence a known effect.

The covariates come from the Collaborative Perinatal Project (mothers and newborns, United States, 1959–1974); the
organisers removed their names. The units below are what the columns look like, and the bounds are round numbers for
such units; what is typical is declared where it lies outside the middle third of them. causallib holds one draw of ten
of the 77 simulated settings.
"""

from string import ascii_uppercase

from dpcate.datasets.dataset import INDICATOR, Dataset
from dpcate.errors import InputError
from dpcate.extras import require
from dpcate.schema import Number, Outcome, Schema

INSTANCES = range(1, 11)

NOTE = (
    "The columns of ACIC16 are anonymised, so there is no codebook: bounds and typical values are round guesses at "
    "what such columns hold (ages, weights, single-digit counts), not statistics of the data. The simulated outcome "
    "has no unit; one wide round range serves all instances; one outcome of the seventh lies above it."
)

_COUNT = Number(0, 10, typical=1)  # single-digit counts and codes
_APGAR = Number(0, 10, typical=8)
_EDUCATION = Number(0, 20, unit="years")
_WEIGHT = Number(50, 400, unit="lb", typical=150)

_MEASURED = {
    1: Number(10, 60, unit="years", typical=25),
    3: Number(0, 100, unit="cigarettes per day", typical=10),
    4: Number(0, 50, unit="years", typical=5),
    5: Number(36, 84, unit="in"),
    6: _WEIGHT,
    17: INDICATOR,
    18: _EDUCATION,
    19: Number(0, 120, unit="index"),
    20: Number(0, 100, typical=10),
    22: INDICATOR,
    23: Number(0, 100, unit="index"),
    25: Number(5, 25, unit="years"),
    26: Number(0, 150, unit="mmHg"),
    27: _WEIGHT,
    28: Number(10, 90, unit="years", typical=30),
    29: _EDUCATION,
    34: Number(0, 100, typical=80),
    35: Number(0, 60, unit="%"),
    36: Number(0, 1500, unit="g", typical=450),
    37: Number(0, 150, unit="cm"),
    38: INDICATOR,
    39: _APGAR,
    40: _APGAR,
    43: Number(0, 40, unit="mg/dL", typical=5),
    44: Number(0, 100, unit="%"),
    45: Number(0, 30, unit="g/dL"),
    51: INDICATOR,
    54: INDICATOR,
    57: Number(30, 60, unit="cm"),
    58: Number(20, 52, unit="weeks"),
}
_LEVELS = {2: 6, 21: 16, 24: 5}  # lettered categories, which causallib spreads over indicators without the first letter


def acic16(instance: int) -> Dataset:
    """Instance 1 to 10: 4,802 rows, 79 columns, the expected outcomes of both arms known."""
    if isinstance(instance, bool) or instance not in INSTANCES:
        raise InputError("instance must be a whole number from 1 to 10")
    bunch = require("causallib.datasets", "peers").load_acic16(instance=int(instance))
    control, treated = bunch.po.to_numpy(float).T
    return Dataset.from_table(
        bunch.X.assign(a=bunch.a, y=bunch.y),
        acic16_schema(),
        note=NOTE,
        tau=treated - control,
        outcome_control=control,
    )


def acic16_schema() -> Schema:
    numbers = {f"x_{j}": _MEASURED.get(j, _COUNT) for j in range(1, 59) if j not in _LEVELS}
    letters = {f"x_{j}_{letter}": INDICATOR for j, count in _LEVELS.items() for letter in ascii_uppercase[1:count]}
    return Schema(covariates=numbers | letters, treatment="a", outcome=Outcome("y", low=-100, high=100))
