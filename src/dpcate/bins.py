"""Public bins for sizes that may differ by orders of magnitude."""

import numpy as np

SIZE_BINS = 20  # each √2 wider than the one below


def size_edges(largest: float) -> np.ndarray:
    """The upper ends of the bins."""
    return largest * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2)


def size_bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each |value|; what is larger falls into the last bin, what is not a number into the first."""
    return np.searchsorted(edges[:-1], np.fmax(np.abs(values), 0.0), side="right")
