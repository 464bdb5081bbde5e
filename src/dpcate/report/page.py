"""The report: what was estimated and for whom, the effects, the promise in plain words, what was paid, the proofs."""

from html import escape

import numpy as np

from dpcate.models import PointsModel
from dpcate.release import ChargedMechanism, Release
from dpcate.report import diagnoses, proofs, words
from dpcate.report.figures import curves
from dpcate.report.markup import (
    banners,
    decimals_for,
    document,
    facts,
    fingerprint,
    fixed,
    items,
    number,
    table,
)
from dpcate.report.profiles import Profiles, usual_profiles

ALPHA = 0.1
_LEVEL = f"{1 - ALPHA:.0%}"
_MOST_NAMED = 8
_MOST_CHARGES = 12  # a longer list is folded behind a summary
_SCALE = (0.1, 0.5, 1.0, 3.0, 5.0, 10.0)


def report_html(release: Release, profiles: Profiles | None = None, content: bytes | None = None) -> str:
    """The page as text. `content` is the release file, if it is not what `release.save` would write."""
    sections = [
        _opening(release),
        _estimated(release),
        "" if isinstance(release.model, PointsModel) else curves(release, ALPHA),
        _profiles(release, profiles or usual_profiles(release)),
        diagnoses.section(release),
        _reading(release),
        _privacy(release),
        _paid(release),
        _origin(release, release.to_json() if content is None else content),
        _proof_pages(release),
    ]
    body = "\n".join(section for section in sections if section)
    return document(words.heading(release), f"<main>\n{body}\n</main>", "page.css")


def _opening(release: Release) -> str:
    warned = words.warnings(release)
    key = facts(
        [
            ("People in the data", words.people(release).removesuffix(" people")),
            ("Privacy loss ε", number(release.epsilon)),
            ("Part that may fail, δ", words.one_in(release.delta)),
            ("Guarantee", "none" if warned else "proven"),
        ]
    )
    return f"""{banners(warned)}
<header>
<p class="kind">Private effect report</p>
<h1>{escape(words.heading(release))}</h1>
<p class="lead">{escape(_lead(release))}</p>
{key}
</header>
{_short_answer(release)}"""


def _lead(release: Release) -> str:
    outcome = release.schema.outcome.name
    asked = f"How much {outcome} changes with {words.comparison(release)}, for people with different characteristics."
    if words.warnings(release):
        return f"{asked} This version protects nobody and is for comparison only."
    return f"{asked} Published with noise that limits how much anything in it depends on any one person in the data."


def _short_answer(release: Release) -> str:
    """The average effect and the effect at the reference profile, where the release has them."""
    told, effect_is = [], f"the estimated effect on {escape(release.schema.outcome.name)} is"
    if release.average is not None:
        shown = _estimate(release, release.ate(), *release.ate_interval(ALPHA))
        told.append(f"<p>On average over the people in the data, {effect_is} {shown}</p>")
    if not isinstance(release.model, PointsModel):
        rest = {name: [covariate.resting] for name, covariate in release.schema.covariates.items()}
        shown = _estimate(release, release.effect(rest)[0], *(end[0] for end in release.effect_interval(rest, ALPHA)))
        told.append(f"<p>At the reference profile ({escape(_reference(release))}), {effect_is} {shown}</p>")
    return f'<section class="short"><h2>In short</h2>\n{"".join(told)}</section>' if told else ""


def _estimate(release: Release, effect: float, low: float, high: float) -> str:
    decimals = decimals_for(high - low)
    unit = f" {release.schema.outcome.unit}" if release.schema.outcome.unit else ""
    side = "above zero" if low > 0 else "below zero" if high < 0 else "on both sides of zero"
    return (
        f"<strong>{fixed(effect, decimals, signed=True)}{escape(unit)}</strong>. The {_LEVEL} interval, "
        f"{fixed(low, decimals)} to {fixed(high, decimals)}, lies {side}."
    )


def _reference(release: Release) -> str:
    covariates = release.schema.covariates
    named = [f"{name} {words.value(c, c.resting)}" for name, c in list(covariates.items())[:_MOST_NAMED]]
    more = f" and {len(covariates) - _MOST_NAMED} more" if len(covariates) > _MOST_NAMED else ""
    return ", ".join(named) + more


def _estimated(release: Release) -> str:
    rows = [
        (name, words.declared(covariate), words.value(covariate, covariate.resting))
        for name, covariate in release.schema.covariates.items()
    ]
    return f"""<section><h2>What was estimated, and for whom</h2>
<p>For people who share the characteristics below, the <em>effect</em> is the average difference in the outcome between
being treated and not being treated. Above zero, the treatment raises the outcome; below zero, it lowers it.</p>
{facts([
    ("Treatment", words.comparison(release)),
    ("Outcome", words.outcome(release)),
    ("Learnt from", f"the records of {words.people(release)}"),
])}
{table("Characteristics that the effect may depend on", ("Characteristic", "Declared values", "Reference"), rows)}
<p class="note">Values beyond the declared bounds were moved to the nearest one, and the effect is not known there. The
reference is where a characteristic rests below while another one varies.</p></section>"""  # fmt: skip


def _profiles(release: Release, profiles: Profiles) -> str:
    effects = release.effect(profiles.columns)
    if isinstance(release.model, PointsModel) and release.model.sds is None:
        told = {"Effect": [number(effect) for effect in effects]}
        note = "This release has no intervals: its noise depends on the data."
    else:
        told = _with_intervals(effects, *release.effect_interval(profiles.columns, ALPHA, simultaneous=True))
        note = (
            f"The intervals hold for all {len(effects)} lines together with {_LEVEL} confidence, so that all may be "
            "read at once; that makes them wider than in the pictures."
        )
    if any(name not in profiles.shown for name in release.schema.covariates):
        note += " Characteristics that a line does not name are at their reference."
    lines = zip(*profiles.shown.values(), *told.values(), strict=True)
    listed = table(f"Effect on {release.schema.outcome.name}", (*profiles.shown, *told), lines)
    return f"""<section><h2>Effects for particular people</h2>
<div class="effects">{listed}</div>
<p class="note">{escape(note)}</p></section>"""


def _with_intervals(effects: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, list[str]]:
    decimals = decimals_for(float(np.min(high - low)))
    return {
        "Effect": [fixed(effect, decimals, signed=True) for effect in effects],
        f"{_LEVEL} interval": [
            f"{fixed(start, decimals)} to {fixed(end, decimals)}" for start, end in zip(low, high, strict=True)
        ],
    }


def _reading(release: Release) -> str:
    entries = [
        ("Cause and effect.", "The numbers are effects of the treatment only if the characteristics above include "
         "everything that influenced both the choice of treatment and the outcome. No interval covers what was not "
         "measured."),
        ("Averages.", "An effect is the average over people who share these characteristics, not a prediction for one "
         "patient."),
        ("Intervals.", "They account for the noise that was added for privacy, for chance in who is in the data, and "
         "for the smoothing of the method. The last two rest on approximations, so the level is nominal."),
    ]  # fmt: skip
    return f"<section><h2>How to read these numbers</h2>\n{items(entries)}</section>"


def _privacy(release: Release) -> str:
    return f"""<section><h2>What is promised to every person in the data</h2>
{_promise(release)}
</section>
<section><h2>What is not protected</h2>
{items(words.not_protected(release))}</section>"""


def _promise(release: Release) -> str:
    if words.warnings(release):
        reason = (
            "it was made with a known seed, so its noise can be taken away again"
            if release.guarantee == "proven" and not release.private
            else "no proof that is known here covers it"
        )
        return f"<p>Nothing is promised by this release: {reason}. The ε and δ in it are claims only.</p>"
    cautions = "\n".join(f'<p class="caution">{escape(text)}</p>' for text in words.cautions(release))
    return f"""<p>{escape(words.promise(release))}</p>
{cautions}
<h3>What ε = {number(release.epsilon)} means</h3>
<p>{escape(words.epsilon(release))}</p>
{_scale(release)}
<h3>What δ means</h3>
<p>{escape(words.delta(release))}</p>
<h3>Why it can be believed</h3>
<p>It is proven: for every table that fits the declared columns, not for a typical one. Each number in the release is a
sum or a fit to which one person can contribute no more than a known amount; noise in proportion to that amount was
added before anything left the curator, and what all the numbers together reveal was added up and kept within ε and δ.
The proof is the page <em>{escape(release.proof)}</em>; its full text, with the pages that it uses, is at the end of
this report.</p>"""


def _scale(release: Release) -> str:
    """The release among other budgets, so that a reader can place it."""
    budgets = sorted({*_SCALE, release.epsilon})
    rows = [
        (number(budget) + (" (this release)" if budget == release.epsilon else ""),
         f"{words.guesses(budget, release.delta):,} in 1,000")
        for budget in budgets
    ]  # fmt: skip
    return table("How often the guesser can be right at most", ("ε", "Right guesses"), rows)


def _paid(release: Release) -> str:
    head = ("Released", "Mechanism", "From", "Privacy spent", "Most one person can change it", "Noise (sd)", "Proof")
    listed = f'<div class="charges">{table("Mechanisms charged", head, map(_charge, release.charges))}</div>'
    if len(release.charges) > _MOST_CHARGES:
        listed = f"""{_summary(release.charges)}
<details><summary>All {len(release.charges)}, one by one</summary>
{listed}</details>"""
    keeps = "are claimed to stay" if words.warnings(release) else "stay"
    return f"""<section><h2>What was released, and what it cost</h2>
<p>Everything in the release was computed from public facts and from the {len(release.charges)} noisy results listed
here. Together they {keeps} within ε = {number(release.epsilon)} and δ = {number(release.delta)}; μ and steps are the
units in which such costs are added up.</p>
{listed}</section>"""


def _summary(charges: list[ChargedMechanism]) -> str:
    """How many results served which purpose; a charge is named "purpose: what"."""
    groups: dict[tuple[str, str], list[ChargedMechanism]] = {}
    for charge in charges:
        groups.setdefault((charge.name.split(":")[0], charge.rows), []).append(charge)
    rows = [
        (purpose, read, str(len(group)), ", ".join(dict.fromkeys(charge.proof for charge in group)))
        for (purpose, read), group in groups.items()
    ]
    return table("Mechanisms charged, by purpose", ("For", "From", "Results", "Proofs"), rows)


def _charge(charge: ChargedMechanism) -> tuple[str, ...]:
    shown = ["not stated" if amount is None else number(amount) for amount in (charge.sensitivity, charge.sd)]
    return charge.name, charge.mechanism, charge.rows, charge.price, *shown, charge.proof


def _origin(release: Release, content: bytes) -> str:
    return f"""<section><h2>Where this report comes from</h2>
<p>It was computed from the release file alone, without access to the data. The file was made by dpcate
{escape(release.library)}. Reading or computing anything from the release costs no further privacy.</p>
{facts(words.method(release))}
<p>SHA-256 of the release file, byte for byte:</p>
<p class="hash">{fingerprint(content)}</p></section>"""


def _proof_pages(release: Release) -> str:
    pages = "\n".join(
        f"<details><summary>{escape(proofs.title(name))} <span>{name}</span></summary>{proofs.as_html(name)}</details>"
        for name in proofs.needed(release)
    )
    if words.warnings(release):
        note = "They prove the mechanisms that are named in the table above; they do not cover this release."
    else:
        note = "They are those of the library, word for word."
    return f"""<section class="proofs"><h2>The proofs</h2>
<p>For readers who want to check. {note}</p>
{pages}</section>"""
