"""The discrete Gaussian of sd 1 on a grid of 2^−bits, exactly and many at a time: integers only, no rounding anywhere.

A draw is ±(k + x), with k = 0, 1, 2, … and x a multiple of 2^−bits below 1, and shall be as likely as exp(−(k + x)²/2):

    exp(−(k + x)²/2) = exp(−k/2) · exp(−k(k − 1)/2) · exp(−x(2k + x)/2).

The first factor draws k, the other two keep it or start anew (Karney 2016). Coins that show heads with probability
exp(−γ), γ ≤ 1, are tossed as by Canonne, Kamath and Steinke (2020): of trials that succeed with probability γ/1, γ/2, …
the first failure has an odd number. γ is a fraction, so all of it is comparing random integers (proofs/gaussian.md).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

BITS = 64
Entropy = Callable[[int], bytes]  # so many uniform bytes
Lanes = NDArray[np.intp]
Integers = NDArray[np.int64]
Fractions = NDArray[np.uint64]
Coins = NDArray[np.bool_]


def discrete_gaussian(count: int, entropy: Entropy, bits: int = BITS) -> list[int]:
    """Independent draws, as multiples of 2^−bits."""
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += _kept(count - len(drawn), entropy, bits)
    return drawn[:count]


def _kept(count: int, entropy: Entropy, bits: int) -> list[int]:
    """Those of some proposals that are kept: about so many, in the order of the proposals."""
    runs = _runs(4 * count + 64, entropy)
    whole, enough = runs[::2], runs[1::2]
    whole = whole[enough >= whole * (whole - 1)]
    part = _fractions(len(whole), entropy, bits)
    negative = _below(2, len(whole), entropy) == 1
    kept = _near(whole, part, entropy, bits) & ~(negative & (whole == 0) & (part == 0))  # there is one zero only
    sizes = zip(whole[kept].tolist(), part[kept].tolist(), negative[kept].tolist(), strict=True)
    return [-((k << bits) + x) if minus else (k << bits) + x for k, x, minus in sizes]


def _runs(count: int, entropy: Entropy) -> Integers:
    """How many coins of exp(−1/2) show heads before the next tails: at least m with probability exp(−m/2)."""
    tails: Lanes = np.empty(0, dtype=np.intp)
    tossed = 0
    while len(tails) < count:
        more = 5 * (count - len(tails)) // 2 + 32
        heads = _coins(more, lambda number, lanes: _below(2 * number, len(lanes), entropy) == 0)
        tails = np.concatenate([tails, tossed + np.flatnonzero(~heads)])
        tossed += more
    return np.diff(tails[:count], prepend=-1) - 1


def _near(whole: Integers, part: Fractions, entropy: Entropy, bits: int) -> Coins:
    """True with probability exp(−x(2k + x)/2): k + 1 heads, each of  γ = x · (2k + x)/(2k + 2)."""
    lane = np.repeat(np.arange(len(whole)), whole + 1)

    def trial(number: int, coins: Lanes) -> Coins:
        k, x = whole[lane[coins]], part[lane[coins]]
        step = _below(number * (2 * k + 2), len(coins), entropy)
        second = (step < 2 * k) | ((step == 2 * k) & (_fractions(len(coins), entropy, bits) < x))
        both: Coins = second & (_fractions(len(coins), entropy, bits) < x)
        return both

    tails = np.bincount(lane[~_coins(len(lane), trial)], minlength=len(whole))
    return np.equal(tails, 0)


def _coins(count: int, trial: Callable[[int, Lanes], Coins]) -> Coins:
    """Heads with probability exp(−γ), where the numbered trial of a coin succeeds with probability γ/number."""
    heads = np.empty(count, dtype=bool)
    going = np.arange(count)
    number = 1
    while len(going):
        succeeds = trial(number, going)
        heads[going[~succeeds]] = number % 2 == 1
        going = going[succeeds]
        number += 1
    return heads


def _fractions(count: int, entropy: Entropy, bits: int) -> Fractions:
    """Uniform multiples of 2^−bits below 1."""
    return np.frombuffer(entropy(8 * count), dtype=np.uint64) >> np.uint64(64 - bits)


def _below(limit: int | Integers, count: int, entropy: Entropy) -> Integers:
    """Uniform integers from 0 to limit − 1: 32 bits beyond the last multiple of the limit are drawn again."""

    def drawn() -> Integers:
        return np.frombuffer(entropy(4 * count), dtype=np.uint32).astype(np.int64)

    value, last = drawn(), 2**32 // limit * limit
    while (beyond := value >= last).any():
        value = np.where(beyond, drawn(), value)
    return value % limit
