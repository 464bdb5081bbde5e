"""Data to learn and to measure on."""

from dpcate.datasets.acic16 import acic16
from dpcate.datasets.actg175 import actg175
from dpcate.datasets.dataset import Dataset
from dpcate.datasets.ihdp import ihdp
from dpcate.datasets.mimic import mimic_extract
from dpcate.datasets.nhefs import nhefs
from dpcate.datasets.pension import pension_401k
from dpcate.datasets.synthetic import synthetic
from dpcate.datasets.tcga import tcga_expression

__all__ = [
    "Dataset",
    "acic16",
    "actg175",
    "ihdp",
    "mimic_extract",
    "nhefs",
    "pension_401k",
    "synthetic",
    "tcga_expression",
]
