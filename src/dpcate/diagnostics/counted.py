"""Where things lie, by noisy counts: how far sizes reach, and quantiles. Functions of released numbers."""

import math

import numpy as np

from dpcate.bins import SIZE_BINS, size_edges
from dpcate.privacy import Noisy

TAIL = 0.01  # of the rows may be larger than what sizes reach, by counts without noise


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
