"""Figures that can be read: axes with words, a legend, budgets; a page that loads nothing."""

import numpy as np

from dpcate.bench.figures import Curve, Labels, budget_figure, effects_figure, save_figure
from dpcate.bench.page import Section, page_html

LABELS = Labels(title="Dataset 1", x="x₀", y="effect (mmHg)", warning="NOT PRIVATE")


def curve(name):
    x = np.linspace(0, 1, 5)
    return Curve(name=name, x=x, effects={0.1: x, 10.0: 2 * x}, original=x, truth=x)


def test_effects_have_a_panel_per_learner_and_budget():
    figure = effects_figure(LABELS, [curve("kernel"), curve("network")])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{name}, ε = {epsilon}" for name in ("kernel", "network") for epsilon in ("0.1", "10")]
    assert [axes.get_xlabel() for axes in figure.axes[2:]] == ["x₀", "x₀"]
    assert figure.axes[0].get_ylabel() == figure.axes[2].get_ylabel() == "effect (mmHg)"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "released effect",
        "same learner without noise",
        "truth",
    ]
    assert figure.get_suptitle() == "Dataset 1\nNOT PRIVATE"


def test_budgets_are_ticks_and_methods_are_in_the_legend():
    series = {"ours": {0.1: [1.0, 2.0], 10.0: [0.1, 0.2]}, "theirs": {0.1: [3.0], 10.0: [1.0]}}
    (axes,) = budget_figure(LABELS, series, {"constant": 1.2}, log=True).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "10"]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("x₀", "effect (mmHg)", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "theirs", "constant"]
    assert np.allclose(axes.lines[0].get_ydata(), [1.5, 0.15])


def test_figures_are_saved_twice(tmp_path):
    save_figure(tmp_path, "one", effects_figure(LABELS, [curve("kernel")]))
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "one.svg").read_bytes()


def test_a_page_holds_everything_and_loads_nothing():
    figure = effects_figure(LABELS, [curve("kernel")])
    sections = [Section(heading="A <b>", warning="NOT PRIVATE", figure=figure, head=("method",), rows=[("ours & co",)])]
    page = page_html("Title", "Introduction", sections, {"ε": "0.1"})
    assert "A &lt;b&gt;" in page
    assert "ours &amp; co" in page
    assert 'class="warning">NOT PRIVATE' in page
    for word in ("data:image/png;base64,", "Introduction", "ε", "numpy", "Python"):
        assert word in page
    assert "://" not in page
