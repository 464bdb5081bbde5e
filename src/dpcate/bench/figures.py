"""Figures of the benches: what is drawn against the budget, and effects drawn along a covariate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from dpcate.files import write_atomically
from dpcate.plots import picture

_WARNING, _TRUTH, _EFFECT, _ORIGINAL = "#b00020", "#c0392b", "#1f5aa6", "#222222"
_MARKERS = "osD^vP*X<>hpd8H"
_COLOURS = colormaps["tab20"].colors[::2] + colormaps["tab20"].colors[1::2]  # strong ones first


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Words of a figure; `warning` is drawn in red under the title."""

    title: str
    x: str
    y: str
    warning: str = ""

    def draw(self, figure: Figure) -> None:
        lines = self.title if not self.warning else f"{self.title}\n{self.warning}"
        figure.suptitle(lines, color=_WARNING if self.warning else "black", fontsize=11)


def budget_figure(
    labels: Labels, series: Mapping[str, Mapping[float, Sequence[float]]], lines: Mapping[str, float], *, log: bool
) -> Figure:
    """Medians over runs with quartiles, against ε; `lines` are levels that no budget changes."""
    figure = Figure(figsize=(8.4, 4.8), layout="constrained", dpi=110)
    axes = figure.subplots()
    for number, (name, runs) in enumerate(series.items()):
        epsilons = sorted(runs)
        low, middle, high = np.array([np.quantile(runs[epsilon], (0.25, 0.5, 0.75)) for epsilon in epsilons]).T
        colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        axes.plot(epsilons, middle, marker=marker, ms=5, lw=1.5, color=colour, label=name)
        axes.fill_between(epsilons, low, high, color=colour, alpha=0.12, lw=0)
    for number, (name, level) in enumerate(lines.items()):
        axes.axhline(level, color="#555555", lw=1.2, ls=("--", ":", "-.", (0, (1, 3)))[number % 4], label=name)
    axes.set_xscale("log")
    ticks = sorted({epsilon for runs in series.values() for epsilon in runs})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(labels.x)
    axes.set_ylabel(labels.y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    labels.draw(figure)
    return figure


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Effects at the same points for several budgets; the learner without noise, and the truth, where known."""

    name: str
    x: np.ndarray
    effects: Mapping[float, np.ndarray]
    original: np.ndarray | None
    truth: np.ndarray | None


def effects_figure(labels: Labels, curves: Sequence[Curve]) -> Figure:
    """A row of panels per learner, a column per budget."""
    epsilons = sorted(curves[0].effects)
    figure = Figure(figsize=(2.5 * len(epsilons), 2.5 * len(curves) + 1.2), layout="constrained", dpi=110)
    grid = figure.subplots(len(curves), len(epsilons), sharex=True, sharey="row", squeeze=False)
    for panels, curve in zip(grid, curves, strict=True):
        order = np.argsort(curve.x)
        for axes, epsilon in zip(panels, epsilons, strict=True):
            axes.plot(curve.x, curve.effects[epsilon], ".", ms=3, color=_EFFECT, alpha=0.6, label="released effect")
            if curve.original is not None:
                axes.plot(curve.x, curve.original, ".", ms=2, color=_ORIGINAL, label="same learner without noise")
            if curve.truth is not None:
                axes.plot(curve.x[order], curve.truth[order], color=_TRUTH, lw=1.4, label="truth")
            axes.set_title(f"{curve.name}, ε = {epsilon:g}", fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel(labels.y)
    for axes in grid[-1]:
        axes.set_xlabel(labels.x)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    labels.draw(figure)
    return figure


def save_figure(folder: Path, name: str, figure: Figure) -> None:
    for kind in ("png", "svg"):
        write_atomically(folder / f"{name}.{kind}", picture(figure, kind))
