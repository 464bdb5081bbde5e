"""The curator's side: rows behind a seal, and their division into parts."""

from dpcate.data.rows import Rows, read_rows
from dpcate.data.split import SPLIT_SEED, Split, SplitKind, split_rows

__all__ = ["SPLIT_SEED", "Rows", "Split", "SplitKind", "read_rows", "split_rows"]
