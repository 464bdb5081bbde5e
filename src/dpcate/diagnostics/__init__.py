"""Paid diagnostics of a fit: overlap, outcome fit, heterogeneity and calibration."""

from dpcate.diagnostics.prices import NAMES, Chosen, chosen, needs_held_out, share_of
from dpcate.diagnostics.stage import Diagnosis, Met

__all__ = ["NAMES", "Chosen", "Diagnosis", "Met", "chosen", "needs_held_out", "share_of"]
