"""Random trials on columns like those of a clinic: counts that are mostly zero, rare indicators, measurements in wide
bounds, amounts and scores with most people near one end.

Outcomes, effects and treatments are sums of terms: lines, curves, steps or products of up to three columns,
standardised and cut off. The effect takes most of its terms from the outcome, the treatment some. The factors of
intervals were chosen on such trials among others (docs/protocol.md).
"""

import numpy as np
from scipy.stats import norm, poisson

from dpcate.bench.problems import TEST_ROWS, Array, Trial, standardised
from dpcate.schema import Number, Outcome, Schema

STYLES = ("lines", "curves", "steps", "exponential")
FURTHEST = 4.0  # sds, where a standardised column is cut off


def clinic_trial(seed: int, n: int, width: int) -> Trial:
    """Three to thirty terms of the outcome, one to fifteen of the effect, 15% to 60% treated."""
    rng = np.random.default_rng([991, seed, width])
    x, covariates = _columns(rng, n + TEST_ROWS, width)
    z = np.clip((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-6), -FURTHEST, FURTHEST)
    terms = _Terms(rng, z, STYLES[rng.integers(len(STYLES))], rng.choice([0.0, 0.2, 0.4]))
    known = [terms.draw() for _ in range(_log_uniform_count(rng, 3, 30))]
    base = _sized(rng, _weighted(rng, known))
    effect = _sized(rng, _effect(rng, terms, known)) + rng.uniform(-5, 5)
    aligned = [term for term in known if rng.random() < rng.choice([0, 0.25, 0.75])]
    own = [terms.draw() for _ in range(rng.integers(2, 10))]
    logit = rng.uniform(0.3, 1.5) * standardised(_weighted(rng, aligned + own)) + rng.uniform(-1.7, 0.3)
    treated = (rng.random(len(x)) < np.clip(1 / (1 + np.exp(-logit)), 0.02, 0.98)).astype(float)
    outcome = base + effect * treated + rng.normal(size=len(x))
    low, high = np.quantile(outcome, [0.0005, 0.9995])
    slack = np.exp(rng.uniform(np.log(0.05), np.log(2.5), 2)) * (high - low)
    schema = Schema(
        covariates={f"x{j}": covariate for j, covariate in enumerate(covariates)},
        treatment="treated",
        outcome=Outcome("outcome", low=float(low - slack[0]), high=float(high + slack[1])),
    )
    return Trial(x[:n], treated[:n], outcome[:n], x[n:], effect[n:], schema)


class _Terms:
    """Terms of one style; each further column joins a term with chance `together`, the third with a third of that."""

    def __init__(self, rng: np.random.Generator, z: Array, style: str, together: float) -> None:
        self._rng, self._z, self.style, self._together = rng, z, style, together

    def draw(self) -> Array:
        more = (self._rng.random() < self._together) + (self._rng.random() < self._together / 3)
        chosen = self._rng.choice(self._z.shape[1], min(1 + more, self._z.shape[1]), replace=False)
        return np.prod([self._shape(self._z[:, j]) for j in chosen], axis=0)

    def _shape(self, z: Array) -> Array:
        straight = {"lines": 1.0, "exponential": 0.4}.get(self.style, 0.25)
        if self._rng.random() < straight:
            return z
        if self.style == "steps":
            step = (z > np.quantile(z, self._rng.uniform(0.2, 0.8))).astype(float)
            return np.clip((step - step.mean()) / max(step.std(), 0.1), -5, 5)
        return np.clip((z, z**2 - 1, 0.4 * z**3, np.abs(z))[self._rng.integers(4)], -5, 5)


def _effect(rng: np.random.Generator, terms: _Terms, known: list[Array]) -> Array:
    """Half or more of its terms are the outcome's; exponential ones grow on one side."""
    count = _log_uniform_count(rng, 1, 15)
    shared = [known[i] for i in rng.permutation(len(known))[: max(1, int(count * rng.choice([0.5, 0.8, 1.0])))]]
    effect = _weighted(rng, shared + [terms.draw() for _ in range(count - len(shared))])
    if terms.style == "exponential":
        grown = np.exp(np.clip(0.8 * standardised(effect), -4, 3))
        effect = standardised(effect) + rng.uniform(0, 1.5) * rng.choice([-1, 1]) * grown
    return effect


def _weighted(rng: np.random.Generator, terms: list[Array]) -> Array:
    return np.column_stack(terms) @ rng.normal(size=len(terms))


def _sized(rng: np.random.Generator, values: Array) -> Array:
    """One to five times the noise."""
    return standardised(values) * np.exp(rng.uniform(0, np.log(5)))


def _log_uniform_count(rng: np.random.Generator, fewest: int, most: int) -> int:
    return int(np.exp(rng.uniform(np.log(fewest), np.log(most))))


def _columns(rng: np.random.Generator, n: int, width: int) -> tuple[Array, list[Number]]:
    """Columns that share factors, and what is declared of them."""
    shared = rng.uniform(0, 0.5)
    factors = rng.normal(size=(n, max(width // 8, 1)))
    loaded = factors[:, rng.integers(0, factors.shape[1], width)]
    latent = norm.cdf(np.sqrt(1 - shared) * rng.normal(size=(n, width)) + np.sqrt(shared) * loaded)
    drawn = [_column(rng, u) for u in np.clip(latent, 1e-6, 1 - 1e-6).T]
    return np.column_stack([values for values, _ in drawn]), [declared for _, declared in drawn]


def _column(rng: np.random.Generator, u: Array) -> tuple[Array, Number]:
    kind = rng.choice(["count", "indicator", "measurement", "amount", "score"], p=[0.4, 0.28, 0.16, 0.08, 0.08])
    bell = norm.ppf(u)
    if kind == "count":
        mean = np.exp(rng.uniform(np.log(0.08), np.log(2.5)))
        return np.minimum(poisson.ppf(u, mean), 10.0), Number(0, 10, typical=1)
    if kind == "indicator":
        return (u < np.exp(rng.uniform(np.log(0.03), np.log(0.6)))).astype(float), Number(0, 1)
    if kind == "measurement":
        high = float(rng.choice([20, 50, 100, 150]))
        middle, sd = high * rng.uniform(0.35, 0.65), high * np.exp(rng.uniform(np.log(0.03), np.log(0.18)))
        return np.clip(np.round(middle + sd * bell), 0, high), Number(0, high)
    if kind == "amount":
        typical = float(rng.choice([5, 10, 25, 30]))
        high = typical * float(rng.choice([3, 5, 10]))
        values = np.round(typical * rng.uniform(0.6, 1.2) * np.exp(rng.uniform(0.2, 0.9) * bell))
        return np.clip(values, 0, high), Number(0, high, typical=typical)
    high = float(rng.choice([10, 100]))
    return np.clip(np.round(high * (1 - 0.12 * np.exp(0.7 * bell))), 0, high), Number(0, high, typical=0.8 * high)
