"""An additive basis on the unit box that is orthonormal for columns with known means and spreads.

Each column gets polynomials in z = (x − m)/s, cut off at ±3, orthonormal under the Beta law with that mean and sd
(Legendre's if the column is uniform; a column of two values gets its line only). Products of low degree join them where
they are asked for. Means and sds are released numbers, so the basis is public.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

Term = tuple[tuple[int, int], ...]  # (column, degree) pairs; () is the constant

REACH = 3.0  # where z is cut off
CEILING = 3.5  # where a basis function is cut off
PAIR_DEGREE = 3  # the largest total degree of a product of two columns
_GRID = np.linspace(0, 1, 401)


@dataclass(frozen=True)
class Basis:
    """Polynomials per column, and the terms in use."""

    means: np.ndarray
    sds: np.ndarray
    polynomials: tuple[np.ndarray, ...]
    terms: tuple[Term, ...]

    @classmethod
    def additive(cls, means: np.ndarray, sds: np.ndarray, degree: int, highest: int) -> "Basis":
        """The constant and every column up to `degree`; columns may grow up to `highest` later."""
        polynomials = tuple(column_polynomials(m, s, max(degree, highest)) for m, s in zip(means, sds, strict=True))
        singles = (
            ((j, k),) for j, matrix in enumerate(polynomials) for k in range(1, min(degree, len(matrix) - 1) + 1)
        )
        return cls(means, sds, polynomials, ((), *singles))

    @property
    def width(self) -> int:
        return len(self.means)

    def degree(self, column: int) -> int:
        return len(self.polynomials[column]) - 1

    def grown(self, paired: list[int], deepened: list[int]) -> "Basis":
        """With products of low degree between the first columns, and all degrees of the second."""
        pairs = [
            ((j, k), (i, r))
            for position, j in enumerate(paired)
            for i in paired[position + 1 :]
            for k in range(1, min(PAIR_DEGREE - 1, self.degree(j)) + 1)
            for r in range(1, min(PAIR_DEGREE - k, self.degree(i)) + 1)
        ]
        deep = [((j, k),) for j in deepened for k in range(1, self.degree(j) + 1)]
        known = set(self.terms)
        return dataclasses.replace(self, terms=(*self.terms, *(term for term in pairs + deep if term not in known)))

    def at(self, x: np.ndarray, terms: tuple[Term, ...] | None = None) -> np.ndarray:
        """One column per term."""
        return evaluate_basis(x, self.means, self.sds, self.polynomials, self.terms if terms is None else terms)


def column_polynomials(mean: float, sd: float, degree: int) -> np.ndarray:
    """Coefficients of the orthonormal polynomials in z, a column each, the constant first."""
    concentration = max(mean * (1 - mean) / sd**2 - 1, 1e-3)
    centre = float(np.clip(mean, 0.01, 0.99))
    mass = np.maximum(np.diff(betainc(centre * concentration, (1 - centre) * concentration, _GRID)), 0)
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


def evaluate_basis(
    x: np.ndarray,
    means: np.ndarray,
    sds: np.ndarray,
    polynomials: tuple[np.ndarray, ...],
    terms: tuple[Term, ...],
) -> np.ndarray:
    """One column per term."""
    highest: dict[int, int] = {}
    for column, degree in (factor for term in terms for factor in term):
        highest[column] = max(degree, highest.get(column, 0))
    single = {}
    for j, degree in highest.items():
        powers = np.ones((degree + 1, len(x)))
        powers[1] = np.clip((x[:, j] - means[j]) / sds[j], -REACH, REACH)
        for k in range(2, degree + 1):
            np.multiply(powers[k - 1], powers[1], out=powers[k])
        values = polynomials[j][: degree + 1, : degree + 1].T @ powers
        single[j] = np.clip(values, -CEILING, CEILING)
    out = np.ones((len(terms), len(x)))
    for value, term in zip(out, terms, strict=True):
        for column, degree in term:
            value *= single[column][degree]
    return out.T
