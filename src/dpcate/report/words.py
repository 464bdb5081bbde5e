"""What the facts of a release mean, in words for a physician and a privacy board."""

import math

from dpcate.release import DeclaredSpent, Release, SampledSpent
from dpcate.report.markup import number
from dpcate.report.proofs import is_known
from dpcate.schema import Category, Number

_METHODS = {
    "features": "one vector of private coefficients (features)",
    "kernel": "kernel regression with Gaussian-process noise (kernel)",
    "network": "a neural network trained with private gradients (network)",
    "moments": "rounds of private sums (moments)",
}
_SPLITS = {
    "crossfit": "everyone serves in both stages, crosswise (crossfit)",
    "disjoint": "one half of the people for each stage (disjoint)",
    "none": "everyone serves in both stages (none)",
}
_LEARNERS = {"r": "R-learner", "dr": "DR-learner"}


def warnings(release: Release) -> list[str]:
    """Why the release must not be published, if there is a reason."""
    found = []
    if release.guarantee != "proven":
        found.append("UNPROVEN: no proof covers this release. Do not publish it for real data.")
    elif not is_known(release.proof):
        found.append("UNPROVEN HERE: this version of dpcate does not know the proof that the release names.")
    if not release.private:
        found.append("NOT PRIVATE: the noise is reproducible. Do not publish this for real data.")
    return found


def cautions(release: Release) -> list[str]:
    """What a board should weigh although a proof covers the release."""
    found = []
    if release.delta * release.persons > 0.1:
        found.append(
            f"δ is large for {people(release)}: a release that showed each person's record with probability δ would "
            "keep to it. It should be far below 1 divided by the number of people."
        )
    if guesses(release.epsilon, release.delta) > 990:
        found.append(
            f"ε = {number(release.epsilon)} is large: a guesser who knows everything else about the data may be right "
            f"{guesses(release.epsilon, release.delta):,} times in 1,000."
        )
    if any(isinstance(charge.spent, DeclaredSpent) for charge in release.charges):
        found.append(
            "Part of the budget was spent by models that were supplied from outside. Their privacy is what their "
            "supplier declared; the proof takes it as given."
        )
    return found


def heading(release: Release) -> str:
    return f"Effect of {release.schema.treatment.name} on {release.schema.outcome.name}"


def comparison(release: Release) -> str:
    treatment = release.schema.treatment
    return f"{treatment.name} = {treatment.treated} instead of {treatment.name} = {treatment.control}"


def outcome(release: Release) -> str:
    """The outcome, its unit and its declared range."""
    declared = release.schema.outcome
    unit = f" {declared.unit}" if declared.unit else ""
    kind = ", either of the two" if declared.binary else ""
    return f"{declared.name}, from {number(declared.low)} to {number(declared.high)}{unit}{kind}"


def people(release: Release) -> str:
    about = "" if release.neighbours == "replace-one" else "about "
    return f"{about}{release.persons:,} people"


def unit(release: Release) -> str:
    rows = release.schema.max_rows_per_person
    return "one person, who owns one row" if rows == 1 else f"one person, with all of up to {rows} rows"


def change(release: Release) -> str:
    """What happens to the data from which the promise says that nobody can tell it well."""
    if release.neighbours == "replace-one":
        return "one person's data are replaced by anyone else's"
    return "one person is added or removed"


def relation(release: Release) -> str:
    counted = "public" if release.neighbours == "replace-one" else "itself published with noise"
    return f"{release.neighbours}: {change(release)}; the number of people is {counted}"


def one_in(probability: float) -> str:
    return f"1 in {1 / probability:,.0f}" if 1e-12 < probability < 0.01 else number(probability)


def guess_rate(epsilon: float, delta: float) -> float:
    """The largest probability of telling two equally likely neighbouring tables apart: (e^ε + δ)/(e^ε + 1)."""
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


def guesses(epsilon: float, delta: float) -> int:
    """The same, in 1,000 attempts, rounded up."""
    return min(math.ceil(1000 * guess_rate(epsilon, delta)), 1000)


def secret(release: Release) -> str:
    """What the guesser of the promise tries to find out."""
    if release.neighbours == "replace-one":
        return "which of two records, the true one or another one of their choice, is a certain person's"
    return "whether a certain person is in the data at all"


def budget(release: Release) -> str:
    return f"ε = {number(release.epsilon)}, and δ = {number(release.delta)} ({one_in(release.delta)}) that may fail"


def claim(release: Release) -> str:
    spent = f"ε = {number(release.epsilon)} and δ = {number(release.delta)}"
    return f"The release satisfies (ε, δ)-differential privacy with {spent}."


def promise(release: Release) -> str:
    return (
        f"{claim(release)} Protected is {unit(release)}. The promise compares the data as they are with data in which "
        f"{change(release)}."
    )


def epsilon(release: Release) -> str:
    right = guesses(release.epsilon, release.delta)
    return (
        f"Think of somebody who knows everybody else's records and wants to find out {secret(release)}. Tossing a "
        f"coin, they are right 500 times in 1,000. With this release they are right at most {right:,} times in 1,000, "
        "whatever else they know and however long they compute."
    )


def delta(release: Release) -> str:
    ratio = release.delta * release.persons
    compared = f"{number(1 / ratio, 3)} times smaller than" if 0 < ratio < 1 else "not smaller than"
    return (
        f"δ = {number(release.delta)} ({one_in(release.delta)}) is the part of the promise that may fail. It is "
        f"{compared} 1 divided by the number of people, with which it is to be compared."
    )


def not_protected(release: Release) -> list[tuple[str, str]]:
    """Short names and sentences; the first ones matter to everybody."""
    counted = " and the number of people" if release.neighbours == "replace-one" else ""
    entries = [
        ("What is true of people in general.", "If the treatment helps the old, that is learnt about everybody who is "
         "old, whether or not they are in the data."),
        ("What was declared.", f"The names, ranges and levels of the columns{counted} are public. They must come from "
         "a codebook, not from the data."),
        ("Several releases.", "Each release from the same data spends its own ε and δ, and they add up."),
        ("Families and groups.", "The promise is for one person. For several together it weakens with their number."),
        ("The curator's computer.", "Whoever can read its memory, its disk or its clock sees more than the release."),
    ]  # fmt: skip
    if release.spec.nuisance.startswith("known"):
        entries.append(
            ("What was taken as known.", "Treatment probabilities or outcome models were declared as known. They must "
             "be public, such as the design of a trial; no software can check where they came from.")
        )  # fmt: skip
    sampled = any(isinstance(charge.spent, SampledSpent) for charge in release.charges)
    if sampled or release.spec.second_stage == "kernel":
        entries.append(
            ("The last digits of the noise.", "Part of the noise comes from a cryptographic generator in ordinary "
             "computer arithmetic; the proof treats its numbers as exact.")
        )  # fmt: skip
    return entries


def held_out(release: Release) -> bool:
    """Whether people were held out of the fit, to judge it."""
    found = release.diagnostics
    return found is not None and (found.heterogeneity is not None or found.calibration is not None)


def checks(release: Release) -> str:
    """Which diagnostics were paid for."""
    found = release.diagnostics
    return ", ".join(name for name in found.__struct_fields__ if getattr(found, name) is not None)


def method(release: Release) -> list[tuple[str, str]]:
    spec = release.spec
    return [
        ("Estimator", _LEARNERS.get(spec.learner, spec.learner)),
        ("Effect function", _METHODS.get(spec.second_stage, spec.second_stage)),
        ("Treatment and outcome models", spec.nuisance),
        (
            "Use of the people",
            _SPLITS[spec.split] + ("; one in five is held out for checks" if held_out(release) else ""),
        ),
        ("Treatment probabilities", f"kept at least {number(spec.propensity_floor)} away from 0 and 1"),
    ]


def declared(covariate: Number | Category) -> str:
    """The declared values of a covariate."""
    if isinstance(covariate, Category):
        return ", ".join(str(level) for level in covariate.levels)
    typical = "" if covariate.typical is None else f", typically {number(covariate.typical)}"
    unit = f" {covariate.unit}" if covariate.unit else ""
    return f"{number(covariate.low)} to {number(covariate.high)}{unit}{typical}"


def value(covariate: Number | Category, cell: object) -> str:
    """One value of a covariate, with its unit."""
    if isinstance(covariate, Category):
        return str(cell)
    return number(float(cell)) + (f" {covariate.unit}" if covariate.unit else "")
