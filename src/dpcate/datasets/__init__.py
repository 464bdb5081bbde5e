"""Data to learn and to measure on."""

from dpcate.datasets.acic16 import acic16
from dpcate.datasets.actg175 import actg175
from dpcate.datasets.dataset import Dataset
from dpcate.datasets.ihdp import ihdp
from dpcate.datasets.nhefs import nhefs
from dpcate.datasets.pension import pension_401k
from dpcate.datasets.synthetic import synthetic

__all__ = ["Dataset", "acic16", "actg175", "ihdp", "nhefs", "pension_401k", "synthetic"]
