"""A function as a linear combination of basis functions, with the posterior covariance of its coefficients."""

import math

import msgspec
import numpy as np

from dpcate.errors import ReleaseError
from dpcate.models.basis import evaluate_basis


class MomentsModel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="moments"
):
    """Released numbers: the columns' means and sds, the basis, coefficients, their covariance, what the basis lacks.

    Coefficients are uncorrelated but for those that `correlated` lists, whose correlations are `correlation`.
    """

    means: list[float]
    sds: list[float]
    polynomials: list[list[list[float]]]
    terms: list[list[tuple[int, int]]]
    coefficients: list[float]
    variances: list[float]
    correlated: list[int]
    correlation: list[list[float]]
    truncation_variance: float

    def __post_init__(self) -> None:
        entries = [entry for matrix in [*self.polynomials, self.correlation] for row in matrix for entry in row]
        numbers = [*self.means, *self.sds, *self.coefficients, *self.variances, self.truncation_variance, *entries]
        if not all(math.isfinite(number) for number in numbers):
            raise ReleaseError("a model must consist of finite numbers")
        if min([*self.variances, self.truncation_variance], default=-1.0) < 0 or min(self.sds, default=0.0) <= 0:
            raise ReleaseError("variances must not be negative, and sds must be positive")
        if not len(self.means) == len(self.sds) == len(self.polynomials) > 0:
            raise ReleaseError("the columns of the basis do not fit each other")
        if any({len(row) for row in matrix} != {len(matrix)} for matrix in self.polynomials):
            raise ReleaseError("the polynomials of the basis must be square tables")
        if not len(self.terms) == len(self.coefficients) == len(self.variances) > 0:
            raise ReleaseError("terms, coefficients and variances do not fit each other")
        known = [len(matrix) for matrix in self.polynomials]
        if not all(0 <= j < len(known) and 1 <= k < known[j] for term in self.terms for j, k in term):
            raise ReleaseError("a term of the basis names a column or degree that does not exist")
        square = {len(row) for row in self.correlation} <= {len(self.correlated)}
        if len(self.correlation) != len(self.correlated) or not square:
            raise ReleaseError("the correlations of the coefficients must be a square table")
        if not all(0 <= place < len(self.terms) for place in self.correlated):
            raise ReleaseError("the correlations name a coefficient that does not exist")

    @property
    def width(self) -> int:
        return len(self.means)

    def value(self, x: np.ndarray) -> np.ndarray:
        return self.features(x) @ np.asarray(self.coefficients)

    def sd(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Privacy noise, sampling noise and nuisance error in the coefficients, and degrees beyond the basis."""
        spread = self.features(x) * np.sqrt(self.variances)
        total = (spread**2).sum(axis=1)
        if self.correlated:
            part = spread[:, self.correlated]
            total += ((part @ np.asarray(self.correlation)) * part).sum(axis=1) - (part**2).sum(axis=1)
        return np.sqrt(np.maximum(total, 0.0) + self.truncation_variance)

    def features(self, x: np.ndarray) -> np.ndarray:
        polynomials = tuple(np.asarray(matrix) for matrix in self.polynomials)
        terms = tuple(tuple(term) for term in self.terms)
        return evaluate_basis(x, np.asarray(self.means), np.asarray(self.sds), polynomials, terms)
