"""Data to learn and to measure on."""

from dpcate.datasets.acic16 import acic16
from dpcate.datasets.dataset import Dataset
from dpcate.datasets.synthetic import synthetic

__all__ = ["Dataset", "acic16", "synthetic"]
