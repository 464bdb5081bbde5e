"""An additive basis on the unit box that is orthonormal for columns with known means and spreads.

Each column gets polynomials in z = (x − m)/s, cut off at ±3, orthonormal under the Beta law with that mean and sd
(Legendre's if the column is uniform; a column of two values gets its line only). Products of low degree join them where
there are few columns. Means and sds are released numbers, so the basis is public.
"""

import numpy as np
from scipy.stats import beta

Term = tuple[tuple[int, int], ...]  # (column, degree) pairs; () is the constant

REACH = 3.0  # where z is cut off
CEILING = 3.5  # where a basis function is cut off
_GRID = np.linspace(0, 1, 401)


def column_polynomials(mean: float, sd: float, degree: int) -> np.ndarray:
    """Coefficients of the orthonormal polynomials in z, a column each, the constant first."""
    concentration = max(mean * (1 - mean) / sd**2 - 1, 1e-3)
    centre = float(np.clip(mean, 0.01, 0.99))
    mass = np.maximum(np.diff(beta.cdf(_GRID, centre * concentration, (1 - centre) * concentration)), 0)
    middle = (_GRID[1:] + _GRID[:-1]) / 2
    degree = 1 if concentration < 0.5 else degree
    powers = np.vander(np.clip((middle - mean) / sd, -REACH, REACH), degree + 1, increasing=True)
    triangle = np.linalg.qr(np.sqrt(mass / mass.sum())[:, None] * powers)[1]
    triangle *= np.sign(np.diag(triangle))[:, None]
    sound = max(int(np.argmin(np.r_[np.diag(triangle) > 0.05, False])) - 1, 1)
    triangle = triangle[: sound + 1, : sound + 1]
    diagonal = np.diag_indices(sound + 1)
    triangle[diagonal] = np.maximum(triangle[diagonal], 0.05)
    return np.linalg.inv(triangle)


def basis_terms(degrees: list[int], pairs: int) -> list[Term]:
    """The constant, every column's degrees, and products of two columns up to total degree pairs + 1."""
    columns = range(len(degrees))
    terms: list[Term] = [(), *(((j, k),) for j in columns for k in range(1, degrees[j] + 1))]
    terms += [
        ((j, k), (i, r))
        for j in columns
        for i in range(j + 1, len(degrees))
        for k in range(1, min(pairs, degrees[j]) + 1)
        for r in range(1, min(pairs, degrees[i]) + 1)
        if k + r <= pairs + 1
    ]
    return terms


def evaluate_basis(
    x: np.ndarray, means: np.ndarray, sds: np.ndarray, polynomials: list[np.ndarray], terms: list[Term]
) -> np.ndarray:
    """One column per term."""
    single = {}
    for j, coefficients in enumerate(polynomials):
        z = np.clip((x[:, j] - means[j]) / sds[j], -REACH, REACH)
        values = np.vander(z, len(coefficients), increasing=True) @ coefficients
        for k in range(1, len(coefficients)):
            single[j, k] = np.clip(values[:, k], -CEILING, CEILING)
    out = np.ones((len(x), len(terms)))
    for position, term in enumerate(terms):
        for factor in term:
            out[:, position] *= single[factor]
    return out
