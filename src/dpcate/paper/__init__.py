"""The paper as printed, for comparison. Nothing here carries a proof; docs/paper.md says why."""

from dpcate.paper.finite import CuratorNotes, PaperKernel, PaperNetwork, paper_queries
from dpcate.paper.functional import PaperFeatures, paper_function

__all__ = ["CuratorNotes", "PaperFeatures", "PaperKernel", "PaperNetwork", "paper_function", "paper_queries"]
