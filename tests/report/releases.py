"""Releases for the tests of pages: a usual one, every kind that needs a warning, and one with everything too long."""

import functools

import msgspec
import numpy as np

import dpcate
from dpcate.models import PointsModel
from dpcate.release import ChargedMechanism, DeclaredSpent, GaussianSpent, SampledSpent

SCHEMA = dpcate.Schema(
    covariates={
        "age": dpcate.Number(18, 100, unit="years", reference=65),
        "sex": dpcate.Category(["f", "m"]),
        "ward": dpcate.Category(["medical", "surgical", "cardiac"], reference="surgical"),
    },
    treatment="ventilated",
    outcome=dpcate.Outcome("rbc", low=2, high=7, unit="million/µl"),
)


@functools.cache
def usual():
    """A private release of 2,000 simulated patients."""
    draws = np.random.default_rng(0)
    age, sex = draws.uniform(18, 100, 2000), draws.choice(["f", "m"], 2000)
    treated = draws.binomial(1, 0.5, 2000)
    outcome = 4 + treated * (0.6 - 0.015 * (age - 60) + 0.2 * (sex == "f")) + draws.normal(0, 0.4, 2000)
    table = {"age": age, "sex": sex, "ward": draws.choice(["medical", "surgical", "cardiac"], 2000)}
    estimator = dpcate.PrivateCATE(SCHEMA, epsilon=1.0, delta=1e-6, second_stage="features", nuisance="features")
    return estimator.fit(outcome, treated, X={**table}).release_


@functools.cache
def diagnosed(epsilon=1.0):
    """A release with every diagnostic, as if its noise were secret: the same words every time."""
    draws = np.random.default_rng(1)
    age, sex = draws.uniform(18, 100, 3000), draws.choice(["f", "m"], 3000)
    treated = draws.binomial(1, 1 / (1 + np.exp(-(age - 60) / 18)))
    outcome = 4 + treated * (0.6 - 0.015 * (age - 60)) + draws.normal(0, 0.4, 3000)
    table = {"age": age, "sex": sex, "ward": draws.choice(["medical", "surgical", "cardiac"], 3000)}
    estimator = dpcate.PrivateCATE(
        SCHEMA, epsilon=epsilon, delta=1e-6, diagnostics=dpcate.diagnostics.NAMES, random_state=0
    )
    return msgspec.structs.replace(estimator.fit(outcome, treated, X=table).release_, private=True)


def seeded():
    return msgspec.structs.replace(usual(), private=False)


def unproven():
    return msgspec.structs.replace(usual(), guarantee="unproven", proof="none")


def unknown_proof():
    return msgspec.structs.replace(usual(), proof="../../../etc/passwd")


def crowded(covariates=300):
    """Every text as long as it can be, every caution and every kind of charge, and many of each."""
    name = "an_extremely_long_column_name_without_any_space_in_it_" * 3
    schema = dpcate.Schema(
        covariates={f"{name}{k}": dpcate.Number(0, 1e9, unit="mg per " * 20) for k in range(covariates)},
        treatment=dpcate.Treatment("t" * 300, control="not treated at all " * 9, treated="treated " * 20),
        outcome=dpcate.Outcome("o" * 300, low=0, high=1, unit="u" * 200, binary=True),
        person="somebody",
        max_rows_per_person=1000,
    )
    spent = [GaussianSpent(0.1), SampledSpent(1.1, 0.01, 1000), DeclaredSpent(0.1, 1e-7)]
    charges = [
        ChargedMechanism(name=name * 2, mechanism=name, rows="all rows", spent=spent[k % 3], sensitivity=None, sd=None,
                         proof=f"{name}{k}")
        for k in range(60)
    ]  # fmt: skip
    points = [[0.1] * covariates, [0.9] * covariates]
    spec = msgspec.structs.replace(usual().spec, nuisance="known propensity " * 30, second_stage="kernel")
    return msgspec.structs.replace(
        usual(), schema=schema, charges=charges, epsilon=25.0, delta=0.4, neighbours="add-or-remove-one", spec=spec,
        average=None, diagnostics=diagnosed().diagnostics,
        model=PointsModel(points=points, values=[0.1, -0.2], sds=[0.1, 0.1]), library="9" * 200,
    )  # fmt: skip
