"""The paper's noise scales and excess risks, as printed and as corrected.

The corrected ones are for planning; the printed ones serve `calibration="paper"` and the tests.
"""

import math

from dpcate.privacy import gdp_mu


def kernel_diagonal(bandwidth: float, width: int) -> float:
    """K(x, x) = (√(2π)h)^(−q) of the paper's Gaussian kernel."""
    return (math.sqrt(2 * math.pi) * bandwidth) ** -width


def theorem_1_factor(epsilon: float, delta: float, n: float) -> float:
    """c(ε, δ, n) = 5√(2 ln n · ln(2/δ)) / (εn): noise per unit of gross-error sensitivity, as printed."""
    return 5 * math.sqrt(2 * math.log(n) * math.log(2 / delta)) / (epsilon * n)


def theorem_3_scale_printed(
    *, slope: float, weight: float, bandwidth: float, width: int, penalty: float, n: float, epsilon: float, delta: float
) -> float:
    """r = sup ρ · 4L√(2 ln(2/δ)) / ((√(2π)h)^q λnε), as printed, for noise of covariance K."""
    diagonal = kernel_diagonal(bandwidth, width)
    return weight * 4 * slope * math.sqrt(2 * math.log(2 / delta)) * diagonal / (penalty * n * epsilon)


def theorem_3_scale_corrected(
    *, slope: float, weight: float, bandwidth: float, width: int, penalty: float, n: float, epsilon: float, delta: float
) -> float:
    """r = sup ρ · L (√(2π)h)^(−q/2) / (λnμ) with the analytic μ(ε, δ), for the same kernel and all of the budget."""
    diagonal = kernel_diagonal(bandwidth, width)
    return weight * slope * math.sqrt(diagonal) / (penalty * n * gdp_mu(epsilon, delta))


def excess_risk_finite_printed(*, gamma: float, queries: int, n: float, epsilon: float, delta: float) -> float:
    """γ · 50d ln n ln(2/δ) / (εn)², as printed."""
    return gamma * 50 * queries * math.log(n) * math.log(2 / delta) / (epsilon * n) ** 2


def excess_risk_finite_corrected(*, gamma: float, queries: int, n: float, epsilon: float, delta: float) -> float:
    """γ² · 50d ln n ln(2/δ) / (εn)²: the square of the noise scale, summed over d queries."""
    return queries * (gamma * theorem_1_factor(epsilon, delta, n)) ** 2


def excess_risk_functional_printed(
    *, slope: float, weight: float, bandwidth: float, width: int, penalty: float, n: float, epsilon: float, delta: float
) -> float:
    """(sup ρ)² · 32L² ln(2/δ) / ((√(2π)h)^(3q) (λnε)²), as printed."""
    diagonal = kernel_diagonal(bandwidth, width)
    return (weight * slope) ** 2 * 32 * math.log(2 / delta) * diagonal**3 / (penalty * n * epsilon) ** 2


def excess_risk_functional_corrected(
    *, slope: float, weight: float, bandwidth: float, width: int, penalty: float, n: float, epsilon: float, delta: float
) -> float:
    """r² · E[U(X)²] with the corrected r: (sup ρ · L)² / ((√(2π)h)^(2q) (λnμ)²)."""
    scale = theorem_3_scale_corrected(
        slope=slope,
        weight=weight,
        bandwidth=bandwidth,
        width=width,
        penalty=penalty,
        n=n,
        epsilon=epsilon,
        delta=delta,
    )
    return scale**2 * kernel_diagonal(bandwidth, width)
