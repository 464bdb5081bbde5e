"""Pictures of a release: the private effect along one covariate, with its band."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from dpcate.encoding import decode_covariates
from dpcate.release import Release
from dpcate.schema import Category, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PRIVATE, _TRUTH, _WARNING = "#1f5aa6", "#c0392b", "#b00020"


def profile(schema: Schema, covariate: str, points: int = 101) -> dict[str, np.ndarray]:
    """Rows that walk along one covariate while the others rest at the middle of their range or first level."""
    declared = schema.covariates[covariate]
    count = len(declared.levels) if isinstance(declared, Category) else points
    resting = [
        np.r_[1.0, np.zeros(c.width - 1)] if isinstance(c, Category) else [0.5] for c in schema.covariates.values()
    ]
    columns = decode_covariates(schema, np.tile(np.concatenate(resting), (count, 1)))
    walk = declared.levels if isinstance(declared, Category) else np.linspace(declared.low, declared.high, points)
    return {**columns, covariate: np.array(walk, dtype=object if isinstance(declared, Category) else float)}


def effect_figure(release: Release, covariate: str, truth: np.ndarray | None = None, alpha: float = 0.1) -> Figure:
    """The private effect along `covariate` with its interval, and the truth where it is known."""
    columns = profile(release.schema, covariate)
    effect, (low, high) = release.effect(columns), release.effect_interval(columns, alpha)
    figure = Figure(figsize=(6.4, 3.9), layout="constrained", dpi=110)
    axes = figure.subplots()
    if isinstance(release.schema.covariates[covariate], Category):
        position = np.arange(len(effect))
        axes.errorbar(
            position,
            effect,
            [effect - low, high - effect],
            fmt="o",
            color=_PRIVATE,
            capsize=4,
            label="private",
        )
        axes.set_xticks(position, [str(level) for level in columns[covariate]])
    else:
        axes.fill_between(
            columns[covariate], low, high, color=_PRIVATE, alpha=0.18, lw=0, label=f"{1 - alpha:.0%} interval"
        )
        axes.plot(columns[covariate], effect, color=_PRIVATE, lw=2, label="private effect")
        if truth is not None:
            axes.plot(
                columns[covariate],
                truth,
                color=_TRUTH,
                lw=1.6,
                ls="--",
                label="truth (never seen by the analyst)",
            )
    _label(axes, release, covariate)
    return figure


def _label(axes: "Axes", release: Release, covariate: str) -> None:
    unit = getattr(release.schema.covariates[covariate], "unit", None)
    axes.set_xlabel(f"{covariate} ({unit})" if unit else covariate)
    outcome = release.schema.outcome
    axes.set_ylabel(f"effect on {outcome.name}" + (f" ({outcome.unit})" if outcome.unit else ""))
    title = f"ε = {release.epsilon:g}, δ = {release.delta:g}, {release.persons:,} persons"
    axes.set_title(
        title if release.private else f"{title} — NOT PRIVATE", color="black" if release.private else _WARNING
    )
    axes.axhline(0, color="#999999", lw=0.8, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def picture(figure: Figure, format: str = "png") -> bytes:
    """The figure's bytes, the same for the same numbers: no date goes into the file."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Software": None} if format == "png" else {"Date": None}
    figure.savefig(buffer, format=format, metadata=metadata)
    return buffer.getvalue()
