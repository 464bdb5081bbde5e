"""Data to learn and to measure on."""

from dpcate.datasets.synthetic import Dataset, synthetic

__all__ = ["Dataset", "synthetic"]
