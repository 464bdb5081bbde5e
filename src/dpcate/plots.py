"""Pictures of a release: the private effect along a covariate, and its diagnostics; and of a plan: width against ε."""

import io
import textwrap
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from dpcate.encoding import place_of, value_at
from dpcate.release import Release
from dpcate.schema import Category, Number, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PRIVATE, _OTHER, _TRUTH, _WARNING, _QUIET = "#1f5aa6", "#d98b2b", "#c0392b", "#b00020", "#8a8f98"


@dataclass(frozen=True)
class Curve:
    """The effect along one covariate, at points of a profile, with the ends of its interval."""

    covariate: str
    at: np.ndarray
    effect: np.ndarray
    low: np.ndarray
    high: np.ndarray


def profile(schema: Schema, covariate: str, points: int = 101) -> dict[str, np.ndarray]:
    """Rows that walk along one covariate while the others rest at their reference values."""
    declared = schema.covariates[covariate]
    if isinstance(declared, Category):
        walk = np.array(declared.levels, dtype=object)
    else:
        walk = value_at(declared, np.linspace(0, 1, points))
    return {
        name: walk if name == covariate else np.array([other.resting] * len(walk), _cells(other))
        for name, other in schema.covariates.items()
    }


def effect_curve(release: Release, covariate: str, alpha: float = 0.1) -> Curve:
    columns = profile(release.schema, covariate)
    low, high = release.effect_interval(columns, alpha)
    return Curve(covariate, columns[covariate], release.effect(columns), low, high)


def effect_figure(release: Release, covariate: str, truth: np.ndarray | None = None, alpha: float = 0.1) -> Figure:
    """The private effect along `covariate` with its interval, and the truth where it is known; it explains itself."""
    figure = Figure(figsize=(6.4, 3.9), layout="constrained", dpi=110)
    axes = figure.subplots()
    curve = effect_curve(release, covariate, alpha)
    _draw(axes, release, curve, f"{1 - alpha:.0%} interval")
    if truth is not None:
        axes.plot(curve.at, truth, color=_TRUTH, lw=1.6, ls="--", label="truth (never seen by the analyst)")
    outcome = release.schema.outcome
    axes.set_ylabel(f"effect on {outcome.name}" + (f" ({outcome.unit})" if outcome.unit else ""))
    title = f"ε = {release.epsilon:g}, δ = {release.delta:g}, {release.persons:,} persons"
    warning = _warning(release)
    axes.set_title(f"{title} — {warning}" if warning else title, color=_WARNING if warning else "black")
    axes.legend(frameon=False)
    return figure


def width_figure(
    budgets: np.ndarray, widths: np.ndarray, noise: np.ndarray, chosen: float, title: str, effect: str
) -> Figure:
    """Width of the intervals against ε, what privacy alone would need, and the chosen ε."""
    figure = Figure(figsize=(6.4, 3.9), layout="constrained", dpi=110)
    axes = figure.subplots()
    axes.loglog(budgets, widths, color=_PRIVATE, lw=2, marker="o", ms=5, label="intervals of the release")
    axes.loglog(budgets, noise, color=_QUIET, lw=1.6, ls="--", label="privacy noise alone")
    axes.axvline(chosen, color=_TRUTH, lw=1.2, label=f"ε = {chosen:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("ε")
    axes.set_ylabel(_plain(f"width, {textwrap.shorten(effect, 40, placeholder='…')}"))
    axes.set_title(title)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def small_figure(release: Release, curve: Curve, span: tuple[float, float]) -> Figure:
    """One of several panels on a page that explains them; all share the vertical range `span`."""
    figure, axes = _panel(release)
    _draw(axes, release, curve, None)
    axes.set_ylim(span)
    return figure


def overlap_figure(release: Release) -> Figure:
    """Noisy counts by estimated propensity, an arm to each side, with their 90% noise; extreme ones are shaded."""
    overlap = release.diagnostics.overlap
    figure, axes = _panel(release)
    middles, width = (overlap.edges[1:] + overlap.edges[:-1]) / 2, 0.9 * np.diff(overlap.edges)
    treatment = release.schema.treatment
    noise = {"ecolor": _QUIET, "elinewidth": 0.9, "capsize": 1.5}
    for counts, side, color, arm in (
        (overlap.treated, 1, _PRIVATE, treatment.treated),
        (overlap.control, -1, _OTHER, treatment.control),
    ):
        name = _plain(textwrap.shorten(f"{treatment.name} = {arm}", 30, placeholder="…"))
        shown = side * np.maximum(counts, 0.0)
        axes.bar(middles, shown, width, yerr=1.645 * overlap.sd, color=color, alpha=0.75, error_kw=noise, label=name)
    for low, high in ((0.0, overlap.margin), (1 - overlap.margin, 1.0)):
        axes.axvspan(low, high, color=_WARNING, alpha=0.07, lw=0)
    axes.set_xlim(0, 1)
    axes.set_xlabel("estimated probability of treatment")
    axes.set_ylabel("records")
    axes.yaxis.set_major_formatter(lambda count, _: f"{abs(count):,.0f}")
    axes.legend(frameon=False, fontsize=9)
    return figure


def calibration_figure(release: Release, alpha: float = 0.1) -> Figure:
    """Mean effects of groups of held-out people against their mean predictions; on the line they are equal."""
    found = release.diagnostics.calibration
    figure, axes = _panel(release)
    low, high = found.interval(alpha)
    known = np.isfinite(found.estimate)
    x, y = found.predicted[known], found.estimate[known]
    axes.errorbar(x, y, [y - low[known], high[known] - y], fmt="o", ms=6, color=_PRIVATE, capsize=4)
    axes.axline((0.0, 0.0), slope=1.0, color=_QUIET, lw=0.9, ls="--")
    span = found.predicted.max() - found.predicted.min() or found.limit
    axes.set_xlim(found.predicted.min() - 0.2 * span, found.predicted.max() + 0.2 * span)
    axes.set_xlabel("predicted effect")
    axes.set_ylabel("estimated effect")
    return figure


def _panel(release: Release) -> tuple[Figure, "Axes"]:
    figure = Figure(figsize=(4.4, 2.9), layout="constrained", dpi=200)
    axes = figure.subplots()
    axes.tick_params(labelsize=10, colors="#333a45", length=3)
    axes.spines[["left", "bottom"]].set_color("#c3c8d0")
    axes.spines[["top", "right"]].set_visible(False)
    if _warning(release):
        axes.set_title(_warning(release), color=_WARNING, fontsize=10, weight="bold")
    return figure, axes


def common_span(curves: list[Curve]) -> tuple[float, float]:
    """A vertical range that holds every curve, its band, and zero."""
    low = min(0.0, *(curve.low.min() for curve in curves))
    high = max(0.0, *(curve.high.max() for curve in curves))
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _draw(axes: "Axes", release: Release, curve: Curve, band: str | None) -> None:
    declared = release.schema.covariates[curve.covariate]
    label = "private effect" if band else None
    if isinstance(declared, Category):
        position = np.arange(len(curve.effect))
        size = [curve.effect - curve.low, curve.high - curve.effect]
        axes.errorbar(position, curve.effect, size, fmt="o", ms=6, color=_PRIVATE, capsize=4, label=label)
        crowded = len(position) > 5
        names = [textwrap.shorten(str(level), 24, placeholder="…") for level in curve.at]
        names = names if crowded else [textwrap.fill(name, 12) for name in names]
        axes.set_xticks(position, names, rotation=45 if crowded else 0, ha="right" if crowded else "center")
        axes.set_xlim(-0.6, len(position) - 0.4)
        axes.set_xlabel(_plain(textwrap.shorten(curve.covariate, 40, placeholder="…")))
    else:
        axes.fill_between(curve.at, curve.low, curve.high, color=_PRIVATE, alpha=0.18, lw=0, label=band)
        axes.plot(curve.at, curve.effect, color=_PRIVATE, lw=2, label=label)
        if declared.typical is not None:
            axes.set_xscale("function", functions=(partial(place_of, declared), partial(value_at, declared)))
            ticks = _ticks(declared)
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlim(declared.low, declared.high)
        named = f"{curve.covariate} ({declared.unit})" if declared.unit else curve.covariate
        axes.set_xlabel(_plain(textwrap.shorten(named, 40, placeholder="…")))
    axes.axhline(0, color=_QUIET, lw=0.9, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)


def _ticks(number: Number) -> list[float]:
    """Both ends of a stretched scale, its middle, and round values between."""
    between = [float(f"{value:.2g}") for value in value_at(number, np.array([0.25, 0.75]))]
    inside = [value for value in (*between, number.typical) if number.low < value < number.high]
    return sorted({number.low, *inside, number.high})


def _plain(text: str) -> str:
    """A name as it is: no dollar sign in it starts a formula."""
    return text.replace("$", r"\$")


def _cells(covariate: Any) -> type:
    return object if isinstance(covariate, Category) else float


def _warning(release: Release) -> str:
    if release.guarantee != "proven":
        return "UNPROVEN"
    return "" if release.private else "NOT PRIVATE"


def picture(figure: Figure, format: str = "png") -> bytes:
    """The figure's bytes, the same for the same numbers: no date goes into the file."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Software": None} if format == "png" else {"Date": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ticks of extreme ranges, letters that the font lacks
        figure.savefig(buffer, format=format, metadata=metadata)
    return buffer.getvalue()
