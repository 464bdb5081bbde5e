"""One self-contained page about a release: what was estimated, how sure it is, what was promised and paid."""

import base64
from html import escape
from typing import Any

import numpy as np

from dpcate.encoding import decode_covariates
from dpcate.models import PointsModel
from dpcate.plots import effect_figure, picture
from dpcate.release import Release

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}img{max-width:100%}
.banner{background:#b00020;color:#fff;padding:.8rem 1rem;font-weight:600}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}
th,td{border-bottom:1px solid #ddd;padding:.3rem .6rem;text-align:left;white-space:nowrap}
"""


def report_html(release: Release) -> str:
    """The page as text; it loads nothing from anywhere."""
    outcome, treatment = escape(release.schema.outcome.name), escape(release.schema.treatment.name)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Effect of {treatment} on {outcome}</title><style>{_STYLE}</style></head><body>
{_banner(release)}
<h1>Effect of {treatment} on {outcome}</h1>
{_points_table(release) if isinstance(release.model, PointsModel) else _curves(release)}
<h2>What is promised</h2>
{_promise(release)}
<h2>What was paid</h2>
<div class="scroll"><table><tr><th>release</th><th>rows read</th><th>spent</th><th>sensitivity</th><th>noise sd</th>
<th>proof page</th></tr>
{"".join(_charge_row(charge) for charge in release.charges)}</table></div>
<p>Made with dpcate {escape(release.library)}.</p>
</body></html>
"""


def _banner(release: Release) -> str:
    warnings = []
    if release.guarantee != "proven":
        warnings.append("UNPROVEN: no proof covers this release. Do not publish it for real data.")
    if not release.private:
        warnings.append("NOT PRIVATE: the noise is reproducible. Do not publish this for real data.")
    return "".join(f'<p class="banner">{warning}</p>\n' for warning in warnings)


def _curves(release: Release) -> str:
    curves = "".join(_curve(release, covariate) for covariate in release.schema.covariates)
    return f"""<p>Each curve shows the estimated difference that the treatment makes, along one characteristic, with the
other characteristics at the middle of their range or at their first level. Bands are 90% intervals for privacy noise,
sampling noise and shrinkage.</p>
{curves}"""


def _points_table(release: Release) -> str:
    """Effects at the declared points, with 90% intervals where the release has them."""
    columns = decode_covariates(release.schema, np.asarray(release.model.points))
    columns["effect"] = release.effect(columns)
    if release.model.sds is not None:
        columns["low"], columns["high"] = release.effect_interval(columns)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>\n"
        for row in zip(*columns.values(), strict=True)
    )
    return f"""<p>The estimated difference that the treatment makes, at the points that were declared for it.</p>
<div class="scroll"><table><tr>{head}</tr>
{rows}</table></div>"""


def _shown(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _curve(release: Release, covariate: str) -> str:
    image = base64.b64encode(picture(effect_figure(release, covariate))).decode()
    name = escape(covariate)
    return f'<h2>{name}</h2><img alt="Effect along {name}" src="data:image/png;base64,{image}">\n'


def _promise(release: Release) -> str:
    if release.guarantee != "proven":
        return "<p>Nothing: this release follows printed formulas that no proof supports.</p>"
    if not release.private:
        return "<p>Nothing: this release was made with a known seed.</p>"
    rows = release.schema.max_rows_per_person
    unit = "one person's row" if rows == 1 else f"all of one person's rows (at most {rows})"
    change = "replaced by anyone else's" if release.neighbours == "replace-one" else "added or removed"
    return f"""<p>The release satisfies ({release.epsilon:g}, {release.delta:g})-differential privacy: whatever
somebody concludes from it, they would have concluded nearly as often had {unit} been {change}. Odds change by a factor
of at most e<sup>{release.epsilon:g}</sup>, except with a probability of about {release.delta:g}. The proof is the page
<em>{escape(release.proof)}</em> of the library. Not protected: what the study finds about people in general, and
the facts declared in the schema.</p>"""


def _charge_row(charge) -> str:
    shown = ["" if number is None else f"{number:.4g}" for number in (charge.sensitivity, charge.sd)]
    cells = [escape(charge.name), escape(charge.rows), escape(charge.price), *shown, escape(charge.proof)]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
