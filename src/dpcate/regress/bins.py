"""Public bins for sizes that may differ by orders of magnitude."""

import numpy as np

SIZE_BINS = 20  # each √2 wider than the one below


def geometric_edges(limit: float) -> np.ndarray:
    """The upper ends of the bins."""
    return limit * 2.0 ** (-np.arange(SIZE_BINS)[::-1] / 2)


def geometric_bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each |value|; what is beyond the last edge counts as within the last bin."""
    return np.minimum(np.searchsorted(edges, np.abs(values), side="right"), SIZE_BINS - 1)
