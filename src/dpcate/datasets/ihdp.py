"""IHDP, surface B of Hill (2011): real covariates of premature infants, a simulated outcome with a known effect.

EconML standardises the covariates by the means and spreads of these very rows, which are not public; here they are in
their own units, from the file that EconML simulates from, with the rows that it keeps.
"""

from pathlib import Path

from dpcate.datasets.dataset import INDICATOR, Dataset, whole_seed
from dpcate.encoding import numbers
from dpcate.extras import require
from dpcate.schema import Number, Outcome, Schema
from dpcate.tables import read_columns

NOTE = (
    "The programme took infants of at most 2,500 g; the other bounds are what is possible at birth and for mothers. "
    "None is the range of the rows, though their rough size was known. The simulated outcome has no unit and, an "
    "exponential, no bound: the range is round, and some draws have a few outcomes above it, which a fit clips."
)


def ihdp(seed: int) -> Dataset:
    """747 infants, 25 covariates; the outcome is drawn with `seed`."""
    seed, schema, dgps = whole_seed(seed), ihdp_schema(), require("econml.data.dgps", "peers")
    outcome, treated, _, effect = dgps.ihdp_surface_B(random_state=seed)
    names = [*schema.covariates, "treat", "momwhite"]
    infants = read_columns(Path(dgps.__file__).parent / "ihdp" / "sim.csv", names)
    kept = (numbers(infants["treat"]) == 0) | (numbers(infants["momwhite"]) == 1)
    table = {name: infants[name][kept] for name in schema.covariates} | {"treat": treated, "y": outcome}
    return Dataset.from_table(table, schema, note=NOTE, tau=effect)


def ihdp_schema() -> Schema:
    measured = {
        "bw": Number(0, 2500, unit="g"),
        "b.head": Number(15, 45, unit="cm"),
        "preterm": Number(0, 20, unit="weeks"),
        "birth.o": Number(1, 10),
        "nnhealth": Number(0, 200, unit="index"),
        "momage": Number(10, 60, unit="years"),
    }
    child_and_mother = ["sex", "twin", "b.marr", "mom.lths", "mom.hs", "mom.scoll", "cig", "first", "booze", "drugs"]
    care = ["work.dur", "prenatal", *(f"site{j}" for j in range(1, 8))]
    return Schema(
        covariates=measured | dict.fromkeys(child_and_mother + care, INDICATOR),
        treatment="treat",
        outcome=Outcome("y", low=-25, high=125),
    )
