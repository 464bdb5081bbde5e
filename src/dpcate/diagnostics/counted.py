"""Where things lie, by noisy counts: how far sizes reach, and quantiles. Functions of released numbers."""

import math

import numpy as np

from dpcate.privacy import Noisy

SIZE_BINS = 20  # each √2 wider than the one below
TAIL = 0.01  # of the rows may be larger than what sizes reach, by counts without noise


def size_edges(largest: float) -> np.ndarray:
    """The public upper ends of the bins of a size."""
    return largest * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2)


def size_bins(values: np.ndarray, largest: float) -> np.ndarray:
    size = np.minimum(np.abs(np.nan_to_num(values, nan=0.0)), 0.999999 * largest)
    return np.searchsorted(size_edges(largest), size, side="right")


def clip_from(counts: Noisy, largest: float, beyond: float) -> float:
    """So many times what sizes are seen to reach, and few rows exceed; the largest where nothing can be seen."""
    below, unsure = np.cumsum(counts.value), counts.sd * math.sqrt(SIZE_BINS)
    total = float(below[-1])
    if total <= 2 * unsure:
        return largest
    first = int(np.argmax(below >= (1 - TAIL) * total - unsure))
    return min(beyond * float(size_edges(largest)[first]), largest)


def quantiles(counts: Noisy, edges: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Where these shares of the rows lie below, within bins by interpolation; counts below zero are taken as none."""
    mass = np.maximum(counts.value, 0.0)
    below = np.concatenate([[0.0], np.cumsum(mass)])
    if below[-1] <= 0:
        below = np.arange(len(edges), dtype=float)
    return np.interp(levels * below[-1], below, edges)
