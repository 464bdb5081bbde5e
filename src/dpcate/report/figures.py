"""The effect along each covariate as pictures for a page, each told in words too."""

import base64
from html import escape

from dpcate.plots import Curve, common_span, effect_curve, picture, small_figure
from dpcate.release import Release
from dpcate.report import words
from dpcate.report.markup import decimals_for, fixed
from dpcate.schema import Category

_MOST_FIGURES = 40


def curves(release: Release, alpha: float) -> str:
    """A section with one picture per covariate, all on one scale."""
    names = list(release.schema.covariates)
    shown = [effect_curve(release, name, alpha) for name in names[:_MOST_FIGURES]]
    span = common_span(shown)
    panels = "\n".join(_panel(release, curve, span) for curve in shown)
    left_out = (
        f"<p>Shown are the first {_MOST_FIGURES} of {len(names)} characteristics.</p>"
        if len(names) > _MOST_FIGURES
        else ""
    )
    outcome = release.schema.outcome
    scale = escape(outcome.name + (f" ({outcome.unit})" if outcome.unit else ""))
    return f"""<section><h2>How the effect varies</h2>
<p>Each picture varies one characteristic and keeps the others at their reference. The height is the effect on {scale},
on the same scale in every picture; the thin grey line is no effect. Bands and bars are {1 - alpha:.0%} intervals,
for each point alone.</p>
<div class="panels">
{panels}
</div>{left_out}</section>"""


def _panel(release: Release, curve: Curve, span: tuple[float, float]) -> str:
    image = base64.b64encode(picture(small_figure(release, curve, span))).decode()
    return f"""<figure><img alt="{escape(_alt(release, curve))}" src="data:image/png;base64,{image}">
<figcaption>{escape(curve.covariate)}</figcaption></figure>"""


def _alt(release: Release, curve: Curve) -> str:
    """The picture in words: levels one by one, a range by its ends."""
    covariate = release.schema.covariates[curve.covariate]
    places = range(len(curve.at)) if isinstance(covariate, Category) else (0, len(curve.at) // 2, -1)
    decimals = decimals_for(float((curve.high - curve.low).min()))
    told = [
        f"{fixed(curve.effect[place], decimals, signed=True)} ({fixed(curve.low[place], decimals)} to "
        f"{fixed(curve.high[place], decimals)}) at {words.value(covariate, curve.at[place])}"
        for place in places
    ]
    return f"Effect along {curve.covariate}: {'; '.join(told)}"
