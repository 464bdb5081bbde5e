"""Private regressions: the second stage, and the same code as nuisance models."""

from dpcate.regress.features import Features
from dpcate.regress.problem import Problem

__all__ = ["Features", "Problem"]
