"""Private regressions: the second stage, and the same code as nuisance models."""

from dpcate.regress.average import AverageEffect, private_average
from dpcate.regress.columns import ColumnMoments, ColumnRows, private_columns
from dpcate.regress.dpsgd import DPSGD
from dpcate.regress.features import Features
from dpcate.regress.kernel import MOST_ROWS, Kernel
from dpcate.regress.moments import EffectStart, Moments, TrialRows, fit_together
from dpcate.regress.network import Network
from dpcate.regress.oracle import KernelOracle
from dpcate.regress.problem import Problem
from dpcate.regress.stages import SecondStage, second_stage_named

__all__ = [
    "DPSGD",
    "MOST_ROWS",
    "AverageEffect",
    "ColumnMoments",
    "ColumnRows",
    "EffectStart",
    "Features",
    "Kernel",
    "KernelOracle",
    "Moments",
    "Network",
    "Problem",
    "SecondStage",
    "TrialRows",
    "fit_together",
    "private_average",
    "private_columns",
    "second_stage_named",
]
