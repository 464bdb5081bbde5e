"""Overlap: how estimated propensities are spread in each arm."""

import numpy as np

from dpcate.diagnostics.sums import Sums
from dpcate.findings import Overlap

BINS = 20
MARGIN = 0.1  # propensities this near to 0 or 1 are extreme


def private_overlap(sums: Sums, propensity: np.ndarray, treated: np.ndarray, floor: float, mu: float) -> Overlap:
    """Counts by arm and propensity. Propensities are kept `floor` away from 0 and 1, so the margin lies beyond it."""
    place = np.clip((np.nan_to_num(propensity, nan=0.5) * BINS).astype(int), 0, BINS - 1)
    counts = sums.counts("overlap: propensities by arm", place + BINS * treated.astype(int), 2 * BINS, mu)
    control, of_treated = counts.value.reshape(2, BINS).tolist()
    margin = max(MARGIN, (np.floor(floor * BINS + 1e-9) + 1) / BINS)
    return Overlap(control=control, treated=of_treated, sd=counts.sd, margin=float(min(margin, 0.5 - 0.5 / BINS)))
