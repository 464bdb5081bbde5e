"""The printed formulas, computed here from the text once more, and their corrections."""

import math

import numpy as np
import pytest

from dpcate.paper import formulas
from dpcate.paper.gross_error import certified_bound, gross_error_sensitivity
from dpcate.paper.kernel_ridge import KernelRidge
from dpcate.privacy import gdp_mu

COMMON = {"slope": 3.0, "weight": 0.9, "penalty": 0.7, "n": 1350, "epsilon": 0.8, "delta": 1e-5}


def test_theorem_1_factor():
    expected = 5 * math.sqrt(2 * math.log(1350) * math.log(2 / 1e-5)) / (0.8 * 1350)
    assert formulas.theorem_1_factor(0.8, 1e-5, 1350) == pytest.approx(expected)


@pytest.mark.parametrize(("width", "bandwidth"), [(2, 0.2), (8, 1.0), (30, 1.0)])
def test_theorem_3_scale(width, bandwidth):
    printed = formulas.theorem_3_scale_printed(width=width, bandwidth=bandwidth, **COMMON)
    height = 1 / (math.sqrt(2 * math.pi) * bandwidth) ** width
    assert printed == pytest.approx(0.9 * 4 * 3.0 * math.sqrt(2 * math.log(2e5)) * height / (0.7 * 1350 * 0.8))
    corrected = formulas.theorem_3_scale_corrected(width=width, bandwidth=bandwidth, **COMMON)
    assert corrected == pytest.approx(0.9 * 3.0 * math.sqrt(height) / (0.7 * 1350 * gdp_mu(0.8, 1e-5)))
    ratio = 4 * math.sqrt(2 * math.log(2e5)) * gdp_mu(0.8, 1e-5) / 0.8 * math.sqrt(height)
    assert printed / corrected == pytest.approx(ratio)


def test_the_printed_scale_is_short_for_wide_kernels_and_too_large_for_narrow_ones():
    def ratio(width, bandwidth):
        settings = {"width": width, "bandwidth": bandwidth, **COMMON}
        return formulas.theorem_3_scale_printed(**settings) / formulas.theorem_3_scale_corrected(**settings)

    assert ratio(30, 1.0) < 1e-5
    assert ratio(2, 0.05) > 10


def test_excess_risks():
    finite = {"gamma": 7.0, "queries": 300, "n": 1350, "epsilon": 0.8, "delta": 1e-5}
    scale = 50 * 300 * math.log(1350) * math.log(2e5) / (0.8 * 1350) ** 2
    assert formulas.excess_risk_finite_printed(**finite) == pytest.approx(7.0 * scale)
    assert formulas.excess_risk_finite_corrected(**finite) == pytest.approx(49.0 * scale)

    q, h = 2, 0.3
    height = (math.sqrt(2 * math.pi) * h) ** -q
    printed = formulas.excess_risk_functional_printed(width=q, bandwidth=h, **COMMON)
    assert printed == pytest.approx((0.9 * 3.0) ** 2 * 32 * math.log(2e5) * height**3 / (0.7 * 1350 * 0.8) ** 2)
    corrected = formulas.excess_risk_functional_corrected(width=q, bandwidth=h, **COMMON)
    assert corrected == pytest.approx((0.9 * 3.0) ** 2 * height**2 / (0.7 * 1350 * gdp_mu(0.8, 1e-5)) ** 2)


def test_gamma_lies_between_a_grid_search_and_the_certified_bound():
    rng = np.random.default_rng(0)
    x = rng.random((80, 2))
    w = rng.choice([-0.6, 0.4], 80)
    fitted = KernelRidge.fit(x, w**2, w * (2 * w + rng.uniform(-1, 1, 80)), bandwidth=0.3, penalty=0.02, n=80)
    queries = rng.random((12, 2))

    def score(x, a, y, g):
        design = a - 0.6
        return design * (y - 0.3) - design**2 * g

    found = gross_error_sensitivity(fitted, queries, score, (-1.0, 4.0), starts=6)
    axis = np.linspace(0, 1, 41)
    grid = np.array(np.meshgrid(axis, axis)).reshape(2, -1).T
    direction = np.linalg.norm(fitted.inverse_at(queries, grid), axis=0)
    dense = max((direction * np.abs(score(grid, a, y, fitted.value(grid)))).max() for a in (0, 1) for y in (-1, 0.7, 4))
    upper = certified_bound(
        queries=queries, bandwidth=0.3, penalty=0.02, norm=fitted.norm(), largest_rho=0.36, largest_rho_phi=0.6 * 4.3
    )
    assert dense * (1 - 1e-9) <= found <= upper
