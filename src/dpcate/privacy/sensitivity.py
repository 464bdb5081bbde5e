"""How far one person can move a statistic: one function per bound, each with its proof page.

Guarantee 2: for every pair of neighbouring tables within any schema, the L2 distance (Hilbert-space
distance for functions) between the two noise-free statistics is at most the returned value.

`rows` is the number of rows that one person may own. Rows outside the table contribute zero.
"""

from dataclasses import dataclass

import numpy as np

from dpcate.errors import InputError
from dpcate.privacy.budget import Neighbours


@dataclass(frozen=True)
class Sensitivity:
    """A proven bound and the name of its page in `proofs/`."""

    value: float
    proof: str

    def scaled(self, factor: float) -> "Sensitivity":
        """The bound for the statistic multiplied by a public number, such as 1/n."""
        return Sensitivity(self.value * factor, self.proof)


def clipped_sum(*, norm_bound: float, neighbours: Neighbours, rows: int = 1) -> Sensitivity:
    """Σ Gᵢ with ‖Gᵢ‖ ≤ C, whatever the rows contain."""
    return Sensitivity(_swaps(neighbours) * rows * norm_bound, "clipped-sum")


def box_sum(*, widths: tuple[float, ...], rows: int = 1) -> Sensitivity:
    """Σ vᵢ with each vᵢ in the box ∏ [0, widthⱼ]: the same under both neighbour relations."""
    return Sensitivity(rows * float(np.linalg.norm(widths)), "box-sum")


def histogram(*, neighbours: Neighbours, rows: int = 1) -> Sensitivity:
    """Counts of rows in disjoint bins: a replaced row leaves one bin and enters another, √2."""
    return Sensitivity(rows * (float(np.sqrt(2.0)) if neighbours == "replace-one" else 1.0), "histogram")


def clipped_second_moment(*, norm_bound: float, neighbours: Neighbours, rows: int = 1) -> Sensitivity:
    """Σ vᵢvᵢ' with ‖vᵢ‖ ≤ C in Frobenius norm: √2·C² when a row is replaced, since both terms are PSD."""
    factor = np.sqrt(2.0) if neighbours == "replace-one" else 1.0
    return Sensitivity(float(factor) * rows * norm_bound**2, "clipped-second-moment")


def huber_minimiser(
    *,
    score_bound: float,
    penalty: float,
    n: float,
    neighbours: Neighbours,
    gradient_norm: float = 0.0,
    rows: int = 1,
) -> Sensitivity:
    """argmin (1/n) Σ ℓᵢ(φᵢ'θ) + λ‖θ‖² with convex ℓᵢ, |ℓᵢ'| ≤ 2B and ‖φᵢ‖ ≤ 1.

    Δ = 2B/(λn) when a row is replaced, B/(λn) when it is added or removed, plus τ/λ for a solver that
    stops at gradient norm τ. For the Huber residual loss with threshold c and design |w| ≤ W, B = cW.
    """
    _require_positive(score_bound=score_bound, penalty=penalty, n=n)
    exact = _swaps(neighbours) * rows * score_bound / (penalty * n)
    return Sensitivity(exact + gradient_norm / penalty, "huber-minimiser")


def ridge_minimiser(
    *,
    design_bound: float,
    target_bound: float,
    penalty: float,
    n: float,
    neighbours: Neighbours,
    rows: int = 1,
) -> Sensitivity:
    """argmin (1/n) Σ (tᵢ − vᵢ'θ)² + λ‖θ‖² with ‖vᵢ‖ ≤ W, |tᵢ| ≤ R, λn ≥ W² and n ≥ 2.

    Δ_add = max over s in [λ/(λ+W²), 1] of  s(WR/λ)(1 + (W/√λ)√(s(1−s))) / (n + sW²/λ).
    """
    _require_positive(design_bound=design_bound, target_bound=target_bound, penalty=penalty, n=n)
    if penalty * n < design_bound**2 or n < 2:
        raise InputError("the ridge bound needs penalty * n of at least the squared design bound, and n of at least 2")
    s = np.linspace(penalty / (penalty + design_bound**2), 1.0, 100_001)
    leverage = design_bound**2 / penalty
    shift = s * (1 + np.sqrt(leverage * s * (1 - s))) / (n + s * leverage)
    spacing_slack = 1 + 1e-6  # the maximum between two grid points
    one_row = design_bound * target_bound / penalty * float(shift.max()) * spacing_slack
    return Sensitivity(_swaps(neighbours) * rows * one_row, "ridge-minimiser")


def _swaps(neighbours: Neighbours) -> int:
    """Replacing a person is removing one and adding another."""
    return 2 if neighbours == "replace-one" else 1


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive number")
