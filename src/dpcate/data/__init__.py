"""The curator's side: rows behind a seal, and their division into parts."""

from dpcate.data.rows import Rows, read_rows
from dpcate.data.split import SPLIT_SEED, Split, split_rows

__all__ = ["SPLIT_SEED", "Rows", "Split", "read_rows", "split_rows"]
