"""What paid diagnostics found, in words, tables and pictures for a physician and a board."""

import base64
import math
from collections.abc import Iterator
from html import escape

import numpy as np

from dpcate.findings import Calibration, Heterogeneity, OutcomeFit, Overlap
from dpcate.plots import calibration_figure, overlap_figure, picture
from dpcate.release import Release
from dpcate.report.markup import decimals_for, fixed, number, table
from dpcate.report.words import held_out

ALPHA = 0.1
_LEVEL = f"{1 - ALPHA:.0%}"
_EVIDENCE = 0.05  # p-values below this are called evidence
_TELLING = 100.0  # the widest interval of a slope, of which 1 is as predicted, that still tells a reader something


def sentences(release: Release) -> Iterator[tuple[str, str]]:
    """Each diagnostic that was asked for: its name, and what it found."""
    found = release.diagnostics
    if found is None:
        return
    for name, diagnostic, told in (
        ("Overlap", found.overlap, _overlap),
        ("Outcome model", found.outcome, _outcome),
        ("Differences between people", found.heterogeneity, _heterogeneity),
        ("Calibration", found.calibration, _calibration),
    ):
        if diagnostic is not None:
            yield name, told(diagnostic)


def section(release: Release) -> str:
    """Everything that was found, or nothing where nothing was asked for."""
    told = dict(sentences(release))
    if not told:
        return ""
    shown = {
        "Overlap": _overlap_picture(release),
        "Calibration": _calibration_picture(release) + _calibration_table(release),
    }
    parts = "\n".join(
        f"<h3>{escape(name)}</h3>\n<p>{escape(text)}</p>\n{shown.get(name, '')}" for name, text in told.items()
    )
    return f"""<section><h2>Checks of the estimate</h2>
<p>These checks were paid for out of the same privacy budget, so they carry noise too; intervals are {_LEVEL} intervals.
{_held_out(release)}</p>
{parts}</section>"""


def _held_out(release: Release) -> str:
    return (
        "One person in five was held out of the fit: whether the effect differs between people, and whether it is "
        "calibrated, was judged on these people alone."
        if held_out(release)
        else ""
    )


def _overlap(overlap: Overlap) -> str:
    bounds = f"below {_percent(overlap.margin)} or above {_percent(1 - overlap.margin)}"
    if math.isnan(overlap.estimate):
        return f"The noise is too large to tell how many records have an estimated probability of treatment {bounds}."
    low, high = map(_percent, overlap.interval(ALPHA))
    return (
        f"About {_percent(overlap.estimate)} ({low} to {high}) of the records have an estimated probability of "
        f"treatment {bounds}. For people like these there is hardly anybody in the other arm to compare with."
    )


def _outcome(fit: OutcomeFit) -> str:
    low, high = fit.interval(ALPHA)
    if math.isnan(fit.estimate) or low < -1:
        return (
            "The noise is too large to tell how much of the outcome the characteristics explain"
            f"{'' if math.isnan(fit.estimate) else f': at most {_percent(high)} of its variance'}."
        )
    return (
        f"The model of the outcome explains {_percent(fit.estimate)} of its variance ({_percent(low)} to "
        f"{_percent(high)}). The more it explains, the smaller the intervals of the effect can be."
    )


def _heterogeneity(found: Heterogeneity) -> str:
    low, high = found.interval(ALPHA)
    chance = f"p = {found.p_value:.2g}" if found.p_value >= 0.001 else "p < 0.001"
    verdict = (
        f"There is evidence that the effect differs between people as predicted ({chance})."
        if found.p_value < _EVIDENCE
        else f"There is no clear evidence that the effect differs between people as predicted ({chance}); "
        "that does not show that it is the same for all."
    )
    if math.isnan(found.estimate) or not high - low < _TELLING:
        return f"{verdict} By how much cannot be told: the noise is too large, or predictions hardly differ."
    decimals = decimals_for(high - low)
    return (
        f"{verdict} Between people whose predictions differ by 1, effects differ by {fixed(found.estimate, decimals)} "
        f"on average ({fixed(low, decimals)} to {fixed(high, decimals)}); 1 would be as predicted, 0 no difference."
    )


def _calibration(found: Calibration) -> str:
    chance = f"p = {found.p_value:.2g}" if found.p_value >= 0.001 else "p < 0.001"
    if found.p_value < _EVIDENCE:
        return f"Mean effects differ from what was predicted by more than chance explains ({chance})."
    return f"Mean effects agree with what was predicted, as far as the noise allows to see ({chance})."


def _overlap_picture(release: Release) -> str:
    overlap = release.diagnostics.overlap
    if overlap is None:
        return ""
    both = np.asarray(overlap.control) + np.asarray(overlap.treated)
    most = int(np.argmax(both))
    words = (
        f"Noisy counts of records by estimated probability of treatment, in each arm. Most lie between "
        f"{_percent(overlap.edges[most])} and {_percent(overlap.edges[most + 1])}. Each count has noise of sd "
        f"{number(overlap.sd, 3)}."
    )
    return _figure(picture(overlap_figure(release)), words, "By probability of treatment")


def _calibration_picture(release: Release) -> str:
    found = release.diagnostics.calibration
    if found is None:
        return ""
    words = "Mean effects of groups of held-out people against their mean predictions; the numbers are in the table."
    return _figure(picture(calibration_figure(release, ALPHA)), words, "Estimated against predicted")


def _calibration_table(release: Release) -> str:
    found = release.diagnostics.calibration
    if found is None:
        return ""
    low, high = found.interval(ALPHA)
    decimals = decimals_for(float(np.min(high - low)))
    rows = [
        (
            f"Group {place + 1} of {len(found.groups)}",
            fixed(found.predicted[place], decimals, signed=True),
            "too few people" if math.isnan(mean) else fixed(mean, decimals, signed=True),
            f"{fixed(low[place], decimals)} to {fixed(high[place], decimals)}",
        )
        for place, mean in enumerate(found.estimate)
    ]
    head = ("From the lowest prediction", "Predicted", "Estimated", f"{_LEVEL} interval")
    return table("Mean effects of held-out people, by prediction", head, rows)


def _figure(image: bytes, words: str, caption: str) -> str:
    encoded = base64.b64encode(image).decode()
    return f"""<div class="panels"><figure><img alt="{escape(words)}" src="data:image/png;base64,{encoded}">
<figcaption>{escape(caption)}</figcaption></figure></div>"""


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%".replace("-", "−")
